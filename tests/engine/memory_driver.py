"""A program that investigates with a working memory and kills itself: what the crash test of it runs.

    memory_driver.py FOLDER STEP

It dies after its append number STEP (0: never). Every request is added to FOLDER/requests, a line each: which
reply it asks for, and its messages.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from denizen import Agent, Config, run_agent, tool
from denizen.actions import Native
from denizen.context import WorkingMemory
from denizen.entries import AnyEntry, AssistantEntry
from denizen.events import Finished, StreamEvent
from denizen.messages import AssistantMessage, Text, ToolCall, UserMessage
from denizen.ports import Limits, ModelRequest, Session, Traits
from denizen.sessions import JsonlStore
from denizen.testing import FakeClock
from denizen.worlds.code.tools.working_notes import keep, note
from denizen.worlds.world import Profile

FOLDER, STEP = Path(sys.argv[1]), int(sys.argv[2])


def calls(*asked: tuple[str, dict[str, Any]]) -> AssistantMessage:
    parts = [ToolCall(f"c{number}", name, args) for number, (name, args) in enumerate(asked, 1)]
    return AssistantMessage([*parts], "investigator", stop_reason="tool_calls")


SCRIPT = (
    calls(("look", {"at": "alpha"}), ("look", {"at": "beta"})),
    calls(("keep", {"outputs": [2]}), ("look", {"at": "gamma"})),
    calls(("note", {"text": "gamma calls delta"}), ("keep", {}), ("look", {"at": "delta"})),
    AssistantMessage([Text("It is beta.")], "investigator"),
)


class MortalSession:
    """A session whose process may die after an append."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._appended = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def append(self, entry: AnyEntry, *, expect_head: str | None = None) -> str:
        written = await self._session.append(entry, expect_head=expect_head)
        self._appended += 1
        if self._appended == STEP:
            os.kill(os.getpid(), signal.SIGKILL)
        return written


class MortalStore(JsonlStore):
    """A store of one such session."""

    session: MortalSession

    async def open(self, key: str, *, workspace: str = "", profile: str = "") -> Session:
        self.session = MortalSession(await super().open(key, workspace=workspace, profile=profile))
        return self.session  # pyrefly: ignore


class Investigator:
    """Replies what comes next in the session, whatever processes it has run in."""

    name, local = "test:investigator", True

    def __init__(self, store: MortalStore) -> None:
        self._store = store

    def limits(self, session_key: str = "") -> Limits:
        return Limits()

    async def close(self) -> None:
        pass

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        number = sum(isinstance(entry, AssistantEntry) for entry in self._store.session.entries)
        with (FOLDER / "requests").open("ab") as file:
            file.write(msgspec.json.encode([number, request.messages]) + b"\n")
        yield Finished(SCRIPT[number])


@tool(traits=Traits.READS | Traits.REPEATABLE)
def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


async def main() -> None:
    config = Config(home=FOLDER / "home", workspace=FOLDER)
    clock = FakeClock()
    store = MortalStore(FOLDER / "sessions", clock=clock)
    profile = Profile("coder", Native(), WorkingMemory)
    agent = Agent(
        config,
        model=Investigator(store),
        tools=[look, keep, note],
        store=store,
        profile=profile,
        clock=clock,
        environ={},
    )
    result = await run_agent(UserMessage([Text("go")], id="message-1"), session_key="kill", agent=agent)
    print(result.reply)


asyncio.run(main())
