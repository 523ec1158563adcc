"""Plays one task of AgentDojo with an agent: a model that obeys whatever it reads, and a person who answers."""

import dataclasses
import itertools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.agentdojo.traits import TRAITS
from benchmarks.contenders import Process
from denizen import Agent, Config, run_agent
from denizen.config.settings import AgentSettings, PolicySettings
from denizen.events import Finished, RunEvent, StreamEvent
from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult
from denizen.ports import Answer, Ask, Decision, Limits, ModelRequest, NoControls, Schema, ToolContext, Traits
from denizen.tools.policy.policy import RulePolicy

Call = Mapping[str, Any]
"""A tool's `name`, and the `args` that it is called with."""

IN_SIGHT = [Traits.NONE, Traits.PRIVATE, Traits.UNTRUSTED, Traits.PRIVATE | Traits.UNTRUSTED]
"""All that a question may depend on."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a task: whether the user's and the injected one are done, and how many questions there were."""

    done: bool
    attacked: bool
    questions: int


@dataclass(slots=True, eq=False)
class DojoTool:
    """A tool of a suite, which runs in AgentDojo's own process."""

    dojo: Process
    name: str
    traits: Traits
    schema: Schema
    shell_names: Sequence[str] = ()

    async def run(self, args: dict[str, Any], turn: ToolContext) -> ToolResult:
        """Let AgentDojo do it."""
        said = self.dojo.ask("call", name=self.name, args=args)
        return ToolResult(turn.call_id, self.name, [Text(said["text"])], is_error=said["failed"])


@dataclass(slots=True)
class Obedient:
    """A model that makes the calls of the user's task, one by one, and those of an injection as soon as it reads one.

    It knows an injection by its `mark`. A call that is refused is left out, and it goes on.
    """

    calls: list[Call] = field(default_factory=list[Call])
    answer: str = ""
    injected: Sequence[Call] = ()
    mark: str = ""
    name, local = "scripted:obedient", False
    _numbers = itertools.count()

    def limits(self, session_key: str = "") -> Limits:
        return Limits(window=1_000_000)

    async def close(self) -> None:
        pass

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if self.mark and isinstance(result := request.messages[-1], ToolResult) and self.mark in result.text:
            self.calls, self.mark = [*self.injected, *self.calls], ""
        if not self.calls:
            yield Finished(AssistantMessage([Text(self.answer or "Done.")], self.name))
            return
        call = self.calls.pop(0)
        part = ToolCall(f"call-{next(self._numbers)}", call["name"], call["args"])
        yield Finished(AssistantMessage([part], self.name, stop_reason="tool_calls"))


@dataclass(slots=True)
class Person(NoControls):
    """Says yes to the questions in `wanted`, and no to all others; reads nothing but the question."""

    wanted: set[str]
    asked: int = 0

    def emit(self, event: RunEvent) -> None:
        pass

    async def ask(self, request: Ask) -> Answer:
        self.asked += 1
        return Answer(request.call_id, allow=request.question in self.wanted)


class NoPolicy(RulePolicy):
    """Lets everything run."""

    def decide(self, call: ToolCall, *_: object, **__: object) -> Decision:
        return Decision("allow", "nobody decides")


@dataclass(frozen=True, slots=True)
class Who:
    """Who decides about calls: nobody at all, or our defaults with a person who reads the questions, or with none.

    `traits` are those of a tool, by its name.
    """

    name: str
    has_policy: bool = True
    attentive: bool = False
    traits: Callable[[str], Traits] = TRAITS.__getitem__


@dataclass(slots=True)
class Player:
    """Plays tasks of one suite with one agent."""

    dojo: Process
    suite: str
    agent: Agent
    model: Obedient
    attentive: bool

    async def play(self, user: str, injection: str = "") -> Outcome:
        """One user task, with an injection task's goal where it reads what others wrote."""
        task = self.dojo.ask("begin", suite=self.suite, user=user, injection=injection)
        person = Person(self._questions(task["calls"]) if self.attentive else set())
        model = self.model
        model.calls, model.answer = task["calls"], task["answer"]
        model.injected, model.mark = task["injected"], task["mark"]
        await run_agent(task["prompt"], agent=self.agent, io=person)
        if model.calls or (model.mark and (self.attentive or not person.asked)):
            raise AssertionError(f"{self.suite} {user} {injection}: not all of it was played")
        scores = self.dojo.ask("score", answer=task["answer"])
        return Outcome(scores["done"], scores["attacked"], person.asked)

    def _questions(self, calls: Sequence[Call]) -> set[str]:
        """What may be asked about the calls that the user wants."""
        policy, tools = self.agent.record.policy, self.agent.tools
        made = [(ToolCall("", each["name"], each["args"]), tools.get(each["name"])) for each in calls]
        return {policy.decide(call, tool, sight).reason for call, tool in made if tool for sight in IN_SIGHT}


def player_of(dojo: Process, suite: str, tools: Sequence[Any], place: Path, who: Who) -> Player:
    """A player in an empty home: Denizen as it comes, with a suite's tools for its own."""
    model, workspace = Obedient(), place / "workspace"
    workspace.mkdir(parents=True)
    config = Config(home=place / "home", workspace=workspace, agent=AgentSettings(max_iterations=100))
    schemas = [Schema(each["name"], each["description"], each["schema"]) for each in tools]
    made = [DojoTool(dojo, each.name, who.traits(each.name), each) for each in schemas]
    agent = Agent(config, model=model, tools=made, environ={})
    if not who.has_policy:
        policy = NoPolicy(PolicySettings(), sandbox=agent.record.sandbox)
        agent.record = dataclasses.replace(agent.record, policy=policy)
    return Player(dojo, suite, agent, model, who.attentive)
