"""A program that runs one turn and kills itself at a given step: what the kill matrix runs.

    kill_driver.py FOLDER STEP

Steps are counted as they happen: before and after each append, and in the middle of the effect that must not happen
twice. STEP 0 runs to the end and prints `steps=N` and the reply.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from denizen import Agent, Config, run_agent, tool
from denizen.entries import AnyEntry
from denizen.events import Finished, StreamEvent
from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult, Usage, UserMessage
from denizen.ports import Limits, ModelRequest, Session, Traits
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore

FOLDER, STEP = Path(sys.argv[1]), int(sys.argv[2])


class Steps:
    """Counts, and dies at the step it was told."""

    def __init__(self) -> None:
        self.count = 0

    def passed(self) -> None:
        self.count += 1
        if self.count == STEP:
            os.kill(os.getpid(), signal.SIGKILL)


STEPS = Steps()


class MortalSession:
    """A session whose process may die before and after each append."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def append(self, entry: AnyEntry, *, expect_head: str | None = None) -> str:
        STEPS.passed()
        written = await self._session.append(entry, expect_head=expect_head)
        STEPS.passed()
        return written


class MortalStore(JsonlStore):
    """A store of such sessions."""

    async def open(self, key: str, *, workspace: str = "", profile: str = "") -> Session:
        return MortalSession(await super().open(key, workspace=workspace, profile=profile))  # pyrefly: ignore


class Planner:
    """Looks and marks at once, marks once more, then says what it read; what it does follows from what it sees."""

    name, local = "test:planner", True

    def limits(self, session_key: str = "") -> Limits:
        return Limits()

    async def close(self) -> None:
        pass

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        results = [message for message in request.messages if isinstance(message, ToolResult)]
        calls = {
            0: [ToolCall("c1", "look", {}), ToolCall("c2", "mark", {"what": "first"})],
            2: [ToolCall("c3", "mark", {"what": "second"})],
        }.get(len(results), [])
        usage = Usage(input=10, output=5, cost_usd=0.0)
        if calls:
            yield Finished(AssistantMessage([*calls], "planner", usage, "tool_calls"))
        else:
            yield Finished(AssistantMessage([Text(" | ".join(each.text for each in results))], "planner", usage))


@tool(traits=Traits.READS | Traits.REPEATABLE)
def look() -> str:
    """Look."""
    return "seen"


@tool(traits=Traits.WRITES)
def mark(what: str) -> str:
    """Leave a mark that can be counted."""
    STEPS.passed()
    with (FOLDER / "marks").open("a") as file:
        file.write(f"{what}\n")
    STEPS.passed()
    return f"marked {what}"


async def main() -> None:
    config = Config(home=FOLDER / "home", workspace=FOLDER)
    store = MortalStore(FOLDER / "sessions", clock=SystemClock())
    async with Agent(config, model=Planner(), tools=[look, mark], store=store) as agent:
        result = await run_agent(UserMessage([Text("go")], id="message-1"), session_key="kill", agent=agent)
    print(f"steps={STEPS.count}")
    print(result.reply)


asyncio.run(main())
