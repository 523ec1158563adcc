"""Undo and redo: the last turn is taken back, files and conversation together."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import Host

from denizen import Agent, run_agent
from denizen.checkpoints import Conflict
from denizen.engine.undo import UNDO_INTENT, redo, return_to, undo, undo_unchanged
from denizen.entries import AnyEntry, CheckpointEntry, StateEntry, UserEntry
from denizen.errors import DenizenError
from denizen.messages import AssistantMessage, ToolCall
from denizen.ports import Session
from denizen.sessions.codec import ENTRY


def writes(path: str, content: str) -> list[Any]:
    """A turn of the model that writes a file and says so."""
    call = ToolCall(f"call-{content}", "write", {"path": path, "content": content})
    return [AssistantMessage([call], stop_reason="tool_calls"), f"wrote {content}"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a file that is not committed yet."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", folder], check=True)
    (folder / "kept.txt").write_text("the user's")
    return folder


def edits(file: Path, content: str, reply: Any) -> Callable[[Any], Any]:
    """A reply of the model, while whose making the user edits a file."""

    def answer(_: Any) -> Any:
        file.write_text(content)
        return reply

    return answer


def said(session: Session) -> list[str]:
    return [entry.message.text for entry in session.entries if isinstance(entry, UserEntry)]


def files(project: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(project.iterdir()) if path.is_file()}


async def cut(agent: Agent, session: Session, at: Callable[[AnyEntry], bool], *, keep: bool = False) -> None:
    """Leave of the transcript what is before an entry, or up to it, as a crash does."""
    path = agent.store.path(session.key)  # pyrefly: ignore[missing-attribute]
    lines = path.read_bytes().splitlines(keepends=True)
    last = next(number for number, line in enumerate(lines) if at(ENTRY.decode(line)))
    path.write_bytes(b"".join(lines[: last + keep]))


async def talk(agent: Agent, *messages: str) -> Session:
    for message in messages:
        await run_agent(message, agent=agent, session_key="default")
    return await agent.open("default")


async def test_undo_takes_back_what_was_said_and_what_was_written(agent_of: MakeAgent, project: Path) -> None:
    agent = agent_of(*writes("a.txt", "one"), *writes("a.txt", "two"))
    session = await talk(agent, "first", "second")
    assert (project / "a.txt").read_text() == "two"
    assert await undo(agent.record, session) == "second"
    assert said(session) == ["first"]
    assert (project / "a.txt").read_text() == "one"
    assert await undo(agent.record, session) == "first"
    assert said(session) == []
    assert [path.name for path in project.iterdir() if path.name != ".git"] == ["kept.txt"]
    await session.close()


async def test_redo_takes_undos_back_one_by_one(agent_of: MakeAgent, project: Path) -> None:
    agent = agent_of(*writes("a.txt", "one"), *writes("a.txt", "two"))
    session = await talk(agent, "first", "second")
    await undo(agent.record, session)
    await undo(agent.record, session)
    assert await redo(agent.record, session) == "first"
    assert (project / "a.txt").read_text() == "one"
    assert await redo(agent.record, session) == "second"
    assert (project / "a.txt").read_text() == "two"
    assert said(session) == ["first", "second"]
    with pytest.raises(DenizenError, match="nothing to redo"):
        await redo(agent.record, session)
    await session.close()


async def test_a_turn_that_changed_no_file_is_undone_alone(agent_of: MakeAgent, project: Path) -> None:
    agent = agent_of("hello")
    session = await talk(agent, "hi")
    (project / "kept.txt").write_text("changed meanwhile")
    await undo(agent.record, session)
    assert said(session) == []
    assert (project / "kept.txt").read_text() == "changed meanwhile"
    await session.close()


async def test_what_the_user_changed_since_is_not_overwritten_unless_told_to(
    agent_of: MakeAgent, project: Path
) -> None:
    agent = agent_of(*writes("a.txt", "one"))
    session = await talk(agent, "first")
    (project / "a.txt").write_text("mine now")
    with pytest.raises(Conflict, match=r"a\.txt\. Keep a copy of what matters, or force it \(in a chat: /undo force"):
        await undo(agent.record, session)
    assert said(session) == ["first"]
    assert (project / "a.txt").read_text() == "mine now"
    await undo(agent.record, session, force=True)
    assert not (project / "a.txt").exists()
    await redo(agent.record, session)
    assert (project / "a.txt").read_text() == "mine now"
    await session.close()


async def test_nothing_is_undone_where_nothing_was_said(agent_of: MakeAgent, project: Path) -> None:
    agent = agent_of()
    session = await agent.open("default")
    with pytest.raises(DenizenError, match="nothing to undo"):
        await undo(agent.record, session)
    await session.close()


async def test_an_undo_that_a_crash_cut_off_is_finished_when_the_session_is_opened(
    agent_of: MakeAgent, project: Path
) -> None:
    agent = agent_of(*writes("a.txt", "one"))
    session = await talk(agent, "first")
    assert agent.checkpoints
    oldest = (await agent.checkpoints.list())[-1].id
    way = {"to": session.entries[0].id, "snapshot": oldest, "expect": ""}
    await session.append(StateEntry(name=UNDO_INTENT, value=way))
    await session.close()
    session = await agent.open("default")
    assert said(session) == []
    assert not (project / "a.txt").exists()
    await session.close()


async def test_what_the_user_changed_between_the_steps_of_a_turn_stays(agent_of: MakeAgent, project: Path) -> None:
    (first, _), (second, answer) = writes("a.txt", "one"), writes("b.txt", "two")
    agent = agent_of(first, edits(project / "kept.txt", "mine now", second), answer)
    session = await talk(agent, "write both")
    await undo(agent.record, session)
    assert files(project) == {"kept.txt": "mine now"}
    (project / "kept.txt").write_text("mine again")
    await redo(agent.record, session)
    assert files(project) == {"a.txt": "one", "b.txt": "two", "kept.txt": "mine again"}
    await session.close()


async def test_a_file_that_both_changed_is_a_conflict_and_nothing_is_touched(
    agent_of: MakeAgent, project: Path
) -> None:
    (first, _), (second, answer) = writes("a.txt", "one"), writes("a.txt", "two")
    agent = agent_of(first, edits(project / "a.txt", "mine", second), answer)
    session = await talk(agent, "write it twice")
    with pytest.raises(Conflict, match=r"a\.txt"):
        await undo(agent.record, session)
    assert files(project) == {"a.txt": "two", "kept.txt": "the user's"}
    await undo(agent.record, session, force=True)
    assert files(project) == {"kept.txt": "the user's"}
    await session.close()


async def test_what_others_changed_between_the_steps_of_a_turn_that_changed_nothing_stays(
    agent_of: MakeAgent, project: Path
) -> None:
    step = AssistantMessage([ToolCall("c", "write", {"path": "kept.txt", "content": "x"})], stop_reason="tool_calls")
    looks = [AssistantMessage([ToolCall("c", "write", {"path": "/x", "content": ""})], stop_reason="tool_calls")] * 2
    agent = agent_of(looks[0], edits(project / "kept.txt", "another's", looks[1]), "done", step, "wrote")
    session = await talk(agent, "first")
    await undo(agent.record, session)
    assert said(session) == []
    assert files(project) == {"kept.txt": "another's"}
    await session.close()


async def test_undo_may_leave_what_somebody_changed_since_and_take_back_the_rest(
    agent_of: MakeAgent, project: Path
) -> None:
    both = AssistantMessage(
        [ToolCall(f"c-{name}", "write", {"path": name, "content": "agent's"}) for name in ("a.txt", "b.txt")],
        stop_reason="tool_calls",
    )
    agent = agent_of(both, "wrote")
    session = await talk(agent, "first")
    (project / "a.txt").write_text("mine now")
    assert await undo_unchanged(agent.record, session, by="m1") == ("first", ["a.txt"])
    assert said(session) == []
    assert files(project) == {"a.txt": "mine now", "kept.txt": "the user's"}
    await redo(agent.record, session)
    assert files(project) == {"a.txt": "mine now", "b.txt": "agent's", "kept.txt": "the user's"}
    await session.close()


async def test_undo_for_a_message_is_done_once(agent_of: MakeAgent, project: Path) -> None:
    agent = agent_of(*writes("a.txt", "one"), *writes("a.txt", "two"))
    session = await talk(agent, "first", "second")
    for _ in range(2):
        await undo_unchanged(agent.record, session, by="m1")
        assert said(session) == ["first"]
        assert (project / "a.txt").read_text() == "one"
    await undo_unchanged(agent.record, session, by="m2")
    assert said(session) == []
    await session.close()


async def test_a_turn_that_a_crash_cut_off_is_undone_with_what_it_did_last(agent_of: MakeAgent, project: Path) -> None:
    agent = agent_of(*writes("a.txt", "one"))
    session = await talk(agent, "first")
    await session.close()
    await cut(agent, session, lambda entry: isinstance(entry, CheckpointEntry) and entry.label == "after")
    session = await agent.open("default")
    assert await undo(agent.record, session) == "first"
    assert files(project) == {"kept.txt": "the user's"}
    await redo(agent.record, session)
    assert (project / "a.txt").read_text() == "one"
    await session.close()


async def test_an_undo_that_can_no_longer_be_finished_is_given_up_and_the_session_opens(
    agent_of: MakeAgent, project: Path
) -> None:
    agent = agent_of(*writes("a.txt", "one"))
    session = await talk(agent, "first")
    await session.close()
    (before, after) = [entry.snapshot for entry in session.entries if isinstance(entry, CheckpointEntry)]
    session = await agent.open("default")
    way = {"to": session.entries[0].id, "snapshot": before, "expect": after, "ours": [[before, after]]}
    await session.append(StateEntry(name=UNDO_INTENT, value=way))
    await session.close()
    (project / "a.txt").write_text("mine, since the crash")
    with pytest.raises(DenizenError, match=r"can't be finished.*a\.txt"):
        await agent.open("default")
    session = await agent.open("default")
    assert said(session) == ["first"]
    assert (project / "a.txt").read_text() == "mine, since the crash"
    await session.close()


async def test_an_undo_that_was_finished_after_a_crash_can_be_taken_back(agent_of: MakeAgent, project: Path) -> None:
    agent = agent_of(*writes("a.txt", "one"))
    session = await talk(agent, "first")
    await undo(agent.record, session)
    await session.close()
    await cut(agent, session, lambda entry: isinstance(entry, StateEntry) and entry.name == UNDO_INTENT, keep=True)
    session = await agent.open("default")
    assert await redo(agent.record, session) == "first"
    assert (project / "a.txt").read_text() == "one"
    await session.close()


async def test_files_and_conversation_return_to_a_checkpoint_together(agent_of: MakeAgent, project: Path) -> None:
    agent = agent_of(*writes("a.txt", "one"), *writes("a.txt", "two"))
    session = await talk(agent, "first", "second")
    assert agent.checkpoints
    after = [entry.snapshot for entry in session.entries if isinstance(entry, CheckpointEntry)][1]
    (project / "kept.txt").write_text("changed")
    await return_to(agent.checkpoints, session, after)
    assert files(project) == {"a.txt": "one", "kept.txt": "the user's"}
    assert said(session) == ["first"]
    assert await redo(agent.record, session) == "second"
    assert files(project) == {"a.txt": "two", "kept.txt": "changed"}
    assert said(session) == ["first", "second"]
    with pytest.raises(DenizenError, match="made no checkpoint"):
        await return_to(agent.checkpoints, session, "0" * 40)
    await session.close()


async def test_a_message_after_an_undo_goes_on_from_there(agent_of: MakeAgent, project: Path, host: Host) -> None:
    agent = agent_of(*writes("a.txt", "one"), "again")
    session = await talk(agent, "first")
    await undo(agent.record, session)
    await session.close()
    result = await run_agent("second", agent=agent, session_key="default")
    assert result.reply == "again"
    last = agent.model.requests[-1].messages  # pyrefly: ignore[missing-attribute]
    assert [message.content[0].text for message in last] == ["second"]
