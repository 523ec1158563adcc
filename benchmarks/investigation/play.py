"""Plays the investigation with real tools, and counts what the model was sent."""

import asyncio
import dataclasses
import re
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

import aiohttp

from benchmarks.investigation.facts import FACTS, quoted
from benchmarks.scene import WrongAnswer
from denizen import Agent, Config, run_agent
from denizen.actions import Shell
from denizen.config.settings import AgentSettings
from denizen.context import WorkingMemory
from denizen.engine.next_request import RequestPart, parts_of
from denizen.events import Finished, StreamEvent
from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult
from denizen.ports import ActionFormat, ContextPolicy, Limits, ModelRequest, Tool, Toolset
from denizen.text.estimate import estimate_message
from denizen.worlds.code import WORLD, coding_tools
from denizen.worlds.code.tools.working_notes import keep, note, notes
from denizen.worlds.world import ToolParts

WRITTEN_FOR = "3.14.5"
"""The version of aiohttp that the replies are about."""
QUESTION = """\
What bounds a request of this HTTP client, in time and in number? For each time-out: its default, where it is enforced,
and what is raised. Then the pool of connections, retries, redirects and WebSockets."""
REPLIES = Path(__file__).with_name("replies.md").read_text("utf-8").split("\n---\n")
MEMORY = (keep, note, notes)
"""The tools that a model without a working memory has no use for."""

Context = Callable[[ActionFormat, Toolset], ContextPolicy]
_LINE_NUMBER = re.compile(r"^\d+[\t:-]", re.MULTILINE)


@dataclass(slots=True)
class Counts:
    """Tokens of all calls, estimated. `cached`: what a request shares with the one before it, from its beginning on."""

    calls: int = 0
    cached: int = 0
    fresh: int = 0
    output: int = 0
    last: int = 0
    before: list[RequestPart] = field(default_factory=list[RequestPart])

    @property
    def input(self) -> int:
        return self.cached + self.fresh

    def count(self, parts: list[RequestPart], reply: AssistantMessage) -> None:
        """Take in one call: what was sent, and what came back."""
        same = takewhile(lambda pair: pair[0] == pair[1], zip(self.before, parts, strict=False))
        cached = sum(part.tokens for part, _ in same)
        self.last = sum(part.tokens for part in parts)
        self.calls += 1
        self.cached += cached
        self.fresh += self.last - cached
        self.output += estimate_message(reply)
        self.before = parts


class Investigator:
    """Says the written replies in an action format, and at the end the facts; it may only quote what it sees.

    `tools` are the agent's. Where there is no working memory among them it neither keeps nor notes anything.
    """

    name, local = "scripted:investigator", False

    def __init__(self, actions: ActionFormat) -> None:
        self._actions = actions
        self._replies = iter(REPLIES)
        self.tools = Toolset()
        self.counts = Counts()
        self.unseen: list[str] = []

    def limits(self, session_key: str = "") -> Limits:
        return Limits(window=1_000_000)

    async def close(self) -> None:
        pass

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        parts = [*parts_of(request, "")]
        seen = _plain("\n".join(part.text for part in parts))
        written = next(self._replies, None)
        reply = self._answer(seen) if written is None else self._said(written, seen)
        self.counts.count(parts, reply)
        yield Finished(reply)

    def _said(self, written: str, seen: str) -> AssistantMessage:
        """The reply with the calls whose tools there are."""
        intent = Shell().read(AssistantMessage([Text(written)]), Toolset([*self.tools, *MEMORY]))
        for call in intent.calls:
            if call.name == note.name:
                self._quotes(call.args["text"], seen)
        calls = [ToolCall(f"{self.counts.calls}-{c.id}", c.name, c.args) for c in intent.calls if c.name in self.tools]
        if isinstance(self._actions, Shell):
            commands = "\n".join(f"$({self._actions.show(call, self.tools)})" for call in calls)
            return AssistantMessage([Text(f"{intent.reply}\n\n{commands}")], self.name)
        return AssistantMessage([Text(intent.reply), *calls], self.name, stop_reason="tool_calls")

    def _answer(self, seen: str) -> AssistantMessage:
        for fact in FACTS:
            self._quotes(fact.says, seen)
        return AssistantMessage([Text("\n".join(f"- {fact.says}" for fact in FACTS))], self.name)

    def _quotes(self, text: str, seen: str) -> None:
        self.unseen += [code for code in quoted(text) if _plain(code) not in seen]


def _plain(text: str) -> str:
    """The text without line numbers and lay-out."""
    return "".join(_LINE_NUMBER.sub("", text).split())


def play(actions: ActionFormat, context: Context, place: Path) -> Counts:
    """One investigation in `place`. Raises WrongAnswer where the answer isn't to be seen in the last call, or wrong."""
    return asyncio.run(_play(actions, context, place))


async def _play(actions: ActionFormat, context: Context, place: Path) -> Counts:
    model = Investigator(actions)
    repository = _copied(place)
    config = Config(home=place / "home", workspace=repository, agent=AgentSettings(max_iterations=100))
    profile = dataclasses.replace(WORLD.profile, actions=actions, context=context, tools=_tools(context))
    async with Agent(config, profile=profile, model=model, environ={}) as agent:
        model.tools = agent.tools
        result = await run_agent(QUESTION, agent=agent)
    failed = [each.text for each in result.messages if isinstance(each, ToolResult) and each.is_error]
    wrong = [code for fact in FACTS for code in fact.wrong(repository / "aiohttp")]
    if model.unseen or failed or wrong or result.iterations != len(REPLIES) + 1:
        raise WrongAnswer(
            f"written for aiohttp {WRITTEN_FOR}, played with {aiohttp.__version__}: "
            f"{result.iterations} iterations, not seen {model.unseen}, failed {failed}, not true {wrong}"
        )
    return model.counts


def _tools(context: Context) -> Callable[[ToolParts], list[Tool]]:
    """A coder's, without those for a memory that the context hasn't."""
    left_out = () if context is WorkingMemory else [tool.name for tool in MEMORY]
    return lambda parts: [tool for tool in coding_tools(parts) if tool.name not in left_out]


def _copied(place: Path) -> Path:
    """The repository: aiohttp's sources as they are installed here."""
    repository = place / "repository"
    for source in (installed := Path(aiohttp.__file__).parent).rglob("*.py"):
        copy = repository / "aiohttp" / source.relative_to(installed)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
    return repository
