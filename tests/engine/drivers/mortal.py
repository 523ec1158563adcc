"""A program that runs one turn under the `planning` driver, in which the agent goes round in circles, and kills itself.

    mortal.py FOLDER STEP

Steps are counted as they happen: when the turn was steered, and when the files were returned but that isn't written.
STEP 0 runs to the end and prints `steps=N` and the reply.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from denizen import Agent, Config, run_agent, tool
from denizen.config.settings import AgentSettings
from denizen.entries import AnyEntry, CheckpointEntry, NoteEntry, SystemEntry
from denizen.errors import ToolRefused
from denizen.events import Finished, StreamEvent
from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult, Usage, UserMessage
from denizen.ports import Limits, ModelRequest, Session, ToolContext, Traits
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore
from denizen.tools.task import task

FOLDER, STEP = Path(sys.argv[1]), int(sys.argv[2])
STUBBORN = 9


class MortalSession:
    """A session whose process may die after each entry that steers, and between a return and its entry."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.steps = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def append(self, entry: AnyEntry, *, expect_head: str | None = None) -> str:
        returned = isinstance(entry, CheckpointEntry) and entry.label == "returned"
        self._passed(returned)
        written = await self._session.append(entry, expect_head=expect_head)
        self._passed(returned or isinstance(entry, SystemEntry | NoteEntry))
        return written

    def _passed(self, steers: bool) -> None:
        self.steps += steers
        if steers and self.steps == STEP:
            os.kill(os.getpid(), signal.SIGKILL)


class MortalStore(JsonlStore):
    """A store of such sessions."""

    async def open(self, key: str, *, workspace: str = "", profile: str = "") -> Session:
        self.session = MortalSession(await super().open(key, workspace=workspace, profile=profile))
        return self.session  # pyrefly: ignore


class Stubborn:
    """Plans, fails in the same way nine times, then gives up; what it does follows from what it sees."""

    name, local = "test:stubborn", True

    def limits(self, session_key: str = "") -> Limits:
        return Limits()

    async def close(self) -> None:
        pass

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        done = sum(isinstance(message, ToolResult) for message in request.messages)
        usage = Usage(input=10, output=5, cost_usd=0.0)
        call = ToolCall(f"c{done}", "spoil", {"text": str(done)})
        if done == 0:
            call = ToolCall("c0", "task", {"action": "plan", "text": "Fix the poem"})
        if done <= STUBBORN:
            yield Finished(AssistantMessage([call], "stubborn", usage, "tool_calls"))
        else:
            yield Finished(AssistantMessage([Text("I can't.")], "stubborn", usage))


@tool(traits=Traits.WRITES)
def spoil(turn: ToolContext, text: str) -> str:
    """Make it worse."""
    (turn.workspace / "poem.txt").write_text(text)
    raise ToolRefused("it doesn't rhyme")


async def main() -> None:
    workspace = FOLDER / "poems"
    config = Config(home=FOLDER / "home", workspace=workspace, agent=AgentSettings(driver="planning"))
    store = MortalStore(FOLDER / "sessions", clock=SystemClock())
    async with Agent(config, model=Stubborn(), tools=[spoil, task], store=store) as agent:
        result = await run_agent(UserMessage([Text("go")], id="message-1"), session_key="kill", agent=agent)
    print(f"steps={store.session.steps}")
    print(result.reply)


asyncio.run(main())
