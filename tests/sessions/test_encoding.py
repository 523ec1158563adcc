"""No planted secret reaches a transcript, and a line that was redacted is still its entry."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.config.redact import Redactor
from denizen.entries import (
    AnyEntry,
    AssistantEntry,
    EndEntry,
    NoteEntry,
    ParkedEntry,
    StateEntry,
    SystemEntry,
    ToolEntry,
    UserEntry,
)
from denizen.messages import AssistantMessage, Opaque, Text, Thinking, ToolCall, ToolResult, UserMessage
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore
from denizen.testing.conformance_store import ONE_OF_EACH, content, opened

CANARY = 'canary-"7\\7"-ünsafe'


def with_secret(secret: str) -> list[AnyEntry]:
    text = f"before {secret} after"
    return [
        UserEntry(message=UserMessage([Text(text)])),
        AssistantEntry(
            message=AssistantMessage(
                [
                    Text(text),
                    Thinking(text, secret),
                    Opaque("x", [{secret: text}]),
                    ToolCall("c1", "bash", {"command": text, "more": [secret, {secret: 1}]}),
                ]
            )
        ),
        ToolEntry(message=ToolResult("c1", "bash", [Text(text)], for_user=text, details={"env": {"KEY": secret}})),
        StateEntry(name="goal", value=text),
        NoteEntry(text=text),
        SystemEntry(text=text),
        ParkedEntry(call_id="c1", question=text),
    ]


async def test_planted_secret_is_in_no_entry_on_disk_or_in_memory(tmp_path: Path) -> None:
    store = JsonlStore(tmp_path, clock=SystemClock(), redactor=Redactor({"KEY": CANARY}))
    async with opened(store) as session:
        for entry in with_secret(CANARY):
            await session.append(entry)
        assert content(session.entries) == with_secret("[redacted:KEY]")
        assert [*await store.read("work")] == [*session.entries]
    data = store.path("work").read_bytes()
    assert b"canary" not in data
    assert b"nsafe" not in data


async def test_secret_in_what_only_prints_as_text_is_redacted(tmp_path: Path) -> None:
    store = JsonlStore(tmp_path, clock=SystemClock(), redactor=Redactor({"KEY": "canary-1234"}))
    async with opened(store) as session:
        details = {"file": Path("/x/canary-1234")}
        await session.append(ToolEntry(message=ToolResult("c1", "ls", [Text("x")], details=details)))
    assert b"canary-1234" not in store.path("work").read_bytes()


async def test_fork_redacts_what_became_a_secret_later(tmp_path: Path) -> None:
    async with opened(JsonlStore(tmp_path, clock=SystemClock())) as session:
        await session.append(NoteEntry(text="canary-1234"))
    store = JsonlStore(tmp_path, clock=SystemClock(), redactor=Redactor({"KEY": "canary-1234"}))
    await store.fork("work", "other")
    assert content(await store.read("other")) == [NoteEntry(text="[redacted:KEY]")]


@pytest.mark.parametrize(
    "secret", ["answered", "tool_calls", "assistant", '"type":"', "message", '{"type":"user"', "iVBORw0K"]
)
async def test_secret_that_looks_like_the_format_breaks_no_line(tmp_path: Path, secret: str) -> None:
    store = JsonlStore(tmp_path, clock=SystemClock(), redactor=Redactor({"KEY": secret}))
    async with opened(store) as session:
        for entry in [*ONE_OF_EACH, EndEntry(stop_reason="answered", error=f"it was {secret}")]:
            await session.append(entry)
        assert [*await store.read("work")] == [*session.entries]
        async with opened(store, "again") as again:
            assert not again.warnings
    last = content(session.entries)[-1]
    assert isinstance(last, EndEntry)
    assert last.stop_reason == "answered"
    assert last.error == ("it was [redacted:KEY]" if len(secret) >= 8 else f"it was {secret}")


@given(secret=st.text(min_size=8), text=st.text())
async def test_any_secret_leaves_lines_that_load(
    tmp_path_factory: pytest.TempPathFactory, secret: str, text: str
) -> None:
    store = JsonlStore(
        tmp_path_factory.mktemp("s"), clock=SystemClock(), redactor=Redactor({"KEY": secret}), sync=False
    )
    async with opened(store) as session:
        await session.append(NoteEntry(text=text + secret + text))
        assert [*await store.read("work")] == [*session.entries]
        assert not session.warnings
