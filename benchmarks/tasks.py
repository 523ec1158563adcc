"""What a plan costs, and what it knows: the same job as a flat list and as a tree. Run: python -m benchmarks.tasks.

The job is scripted: twelve steps, one of which turns out to be three when it is half done. The worker does whatever
stands first among the `ready` ones of the plan that it is shown, and marks it. No language model takes part: whether a
model plans better in one form than in the other isn't measured here.
"""

import asyncio
import itertools
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.report import Table, number
from denizen import Agent, Config, run_agent, tool
from denizen.actions import Native
from denizen.config.settings import AgentSettings
from denizen.context import Transcript, WorkingMemory
from denizen.messages import AssistantMessage, ToolCall
from denizen.ports import ModelRequest, Traits
from denizen.testing import FakeClock, ScriptedModel
from denizen.tools.task import task
from denizen.worlds.world import Profile

FLAT = """\
Read the command line's code
Read the formatter's code
Read the tests
Add the option (after 1)
Write the encoder (after 2)
Use the encoder where the option is set (after 4, 5)
Test the encoder (after 3, 5)
Test the command from end to end (after 3, 6)
Describe the option (after 4)
Add a line to the changelog (after 6)
Look through the whole difference (after 7, 8, 9, 10)
Commit (after 11)"""
ORDER_ALONE = re.sub(r" \(after .*\)", "", FLAT)
TREE = """\
Understand
  Read the command line's code
  Read the formatter's code
  Read the tests
Build (after 1)
  Add the option
  Write the encoder
  Use the encoder where the option is set (after 2.1, 2.2)
Check (after 2)
  Test the encoder
  Test the command from end to end
  Describe the option
  Add a line to the changelog
Finish (after 3)
  Look through the whole difference
  Commit (after 4.1)"""

PARTS = ["Encode dates", "Encode bytes", "Encode what holds itself"]
GROWS = "Write the encoder"
USES = {"Use the encoder where the option is set", "Test the encoder"}
"""What must not be begun before all parts of the encoder are there."""

STEPS = [step for line in ORDER_ALONE.splitlines() for step in (PARTS if line == GROWS else [line])]

Revise = Callable[[str], Sequence[dict[str, Any]]]
"""The calls by which a plan takes in that the step of that id is three."""


def as_subtasks(step: str) -> Sequence[dict[str, Any]]:
    """They belong to the step: whoever waits for it waits for them."""
    return [{"action": "add", "text": "\n".join(PARTS), "under": step}]


def beside(step: str) -> Sequence[dict[str, Any]]:
    """They are tasks of their own, and nobody waits for them."""
    return [{"action": "drop", "text": step}, {"action": "add", "text": "\n".join(PARTS)}]


def beside_and_waited_for(step: str) -> Sequence[dict[str, Any]]:
    """Those who waited for the step are told to wait for them."""
    parts = ["13", "14", "15"]
    return [
        *beside(step),
        {"action": "edit", "text": "6", "after": ["4", *parts]},
        {"action": "edit", "text": "7", "after": ["3", *parts]},
    ]


def set_anew(step: str) -> Sequence[dict[str, Any]]:
    """The whole plan once more, with the parts in the place of the step."""
    done = 4  # the steps before it
    lines = [f"[x] {line}" if n < done else line for n, line in enumerate(ORDER_ALONE.splitlines())]
    return [{"action": "plan", "text": "\n".join([*lines[:done], *PARTS, *lines[done + 1 :]])}]


VARIANTS: dict[str, tuple[str, Revise]] = {
    "no plan": ("", as_subtasks),
    "list": (ORDER_ALONE, beside),
    "list, set anew": (ORDER_ALONE, set_anew),
    "list with dependencies": (FLAT, beside),
    "… fixed by hand": (FLAT, beside_and_waited_for),
    "… where one step has parts": (FLAT, as_subtasks),
    "tree": (TREE, as_subtasks),
}


@tool(traits=Traits.READS | Traits.REPEATABLE)
def work(step: str) -> str:
    """Do a step."""
    return f"done: {step}"


@dataclass(slots=True)
class Worker:
    """Plays the model: sets the plan, then does what is ready, step by step, until nothing is.

    `read` is the characters of all its contexts, `ready` how many steps could be begun each time; `early` counts those
    that it began before what they need.
    """

    plan: str
    revise: Revise
    written: list[dict[str, Any]] = field(default_factory=list)
    revision: Sequence[dict[str, Any]] = ()
    calls: int = 0
    read: int = 0
    ready: list[int] = field(default_factory=list)
    early: int = 0
    missing: int = 0

    def reply(self, request: ModelRequest) -> AssistantMessage | str:
        """The next calls, or that all is done."""
        self.calls += 1
        self.read += sum(len(message.text) for message in request.messages)
        if not self.plan:
            return self._ask([], STEPS[self.calls - 1]) if self.calls <= len(STEPS) else "All is done."
        if self.calls == 1:
            return self._ask([{"action": "plan", "text": self.plan}])
        text = "\n".join(message.text for message in request.messages)
        ready = re.findall(r"[\w.]+", text[text.rindex("Plan: ") :].partition("\n")[0].partition("ready: ")[2])
        goals = dict(re.findall(r"^ *([\w.]+) \[.\] (.*?)(?: \(after .*)?$", text, re.MULTILINE))
        return self._step(ready, goals[ready[0]]) if ready else "All is done."

    def _step(self, ready: Sequence[str], goal: str) -> AssistantMessage:
        if goal == GROWS and not self.revision:
            self.revision, self.missing = self.revise(ready[0]), len(PARTS)
            return self._ask(self.revision)
        self.ready.append(len(ready))
        self.early += goal in USES and self.missing > 0
        self.missing -= goal in PARTS
        return self._ask([{"action": "done", "text": ready[0]}], goal)

    def _ask(self, calls: Sequence[dict[str, Any]], step: str = "") -> AssistantMessage:
        self.written += calls
        parts = [ToolCall(f"t{self.calls}-{n}", "task", args) for n, args in enumerate(calls)]
        return AssistantMessage([*([ToolCall(f"w{self.calls}", "work", {"step": step})] if step else []), *parts])

    @property
    def wrote(self) -> int:
        """Characters of the arguments by which it kept the plan."""
        return sum(len(str(value)) for args in self.written for value in args.values())


async def play(name: str, context: type[Transcript | WorkingMemory]) -> Worker:
    """The worker after the whole job."""
    worker = Worker(*VARIANTS[name])
    model = ScriptedModel(itertools.repeat(worker.reply))
    with tempfile.TemporaryDirectory() as folder:
        config = Config(home=Path(folder, "home"), workspace=Path(folder), agent=AgentSettings(max_iterations=99))
        profile = Profile("tasks", Native(), context)
        setting = {"profile": profile, "model": model, "tools": [work, task], "clock": FakeClock(), "environ": {}}
        async with Agent(config, **setting) as agent:
            result = await run_agent("Add a --json option.", agent=agent)
    assert result.reply == "All is done.", name
    return worker


async def table() -> Table:
    """All variants."""
    note = "Characters written by the model to keep the plan, and read by it in all calls; calls of `task`."
    columns = "plan", "written", "calls", "to revise", "read, working memory", "read, transcript", "ready", "too early"
    made = Table("What a plan costs and knows", note, columns)
    for name in VARIANTS:
        kept, said = await play(name, WorkingMemory), await play(name, Transcript)
        ready = number(mean(kept.ready)) if kept.ready else ""
        read, whole = f"{kept.read:,}", f"{said.read:,}"
        made.add(name, kept.wrote, len(kept.written), len(kept.revision), read, whole, ready, kept.early)
    return made


if __name__ == "__main__":
    print(asyncio.run(table()).markdown())
