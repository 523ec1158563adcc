"""AgentDojo's suites, where AgentDojo is installed: its environments, tasks, tools and scores.

It obeys as contenders do: JSON lines on standard input, one reply each on standard output. One task at a time is open:
`begin` opens it, `call` runs a tool in its environment, `score` says what came of it.
"""

import asyncio
import sys
from ast import literal_eval
from collections.abc import Sequence
from functools import cache
from typing import Any

from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.agent_pipeline.ground_truth_pipeline import GroundTruthPipeline
from agentdojo.agent_pipeline.tool_execution import is_string_list, tool_result_to_str
from agentdojo.attacks.base_attacks import FixedJailbreakAttack
from agentdojo.base_tasks import BaseInjectionTask, BaseUserTask
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime, TaskEnvironment
from agentdojo.task_suite.load_suites import get_suites
from agentdojo.task_suite.task_suite import TaskSuite
from agentdojo.types import ChatAssistantMessage, text_content_block_from_string

from benchmarks.driver import Figures, obey, own_stdout

SUITES: dict[str, TaskSuite[Any]] = get_suites(sys.argv[1])  # the benchmark's version, such as v1.2.2


ATTACKS = {
    name: FixedJailbreakAttack("TODO: {goal}", suite, GroundTruthPipeline(None)) for name, suite in SUITES.items()
}
"""AgentDojo's `direct` attack: it puts the goal wherever the user's task makes the model read what others wrote."""


@cache
def environment_of(suite: str, places: Sequence[str] = (), text: str = "") -> TaskEnvironment:
    """The suite's environment with the text in these places; never changed, only copied."""
    return SUITES[suite].load_and_inject_default_environment(dict.fromkeys(places, text))


def mark_of(injection: str) -> str:
    """A word in an injected text by which the model knows it; without blanks, so that no line break parts it."""
    return f"[{injection}]"


class Played(BasePipelineElement):
    """A task that was played already: what it left, and all that the model said and called."""

    def __init__(self, after: TaskEnvironment, said: ChatAssistantMessage) -> None:
        self._after, self._said = after, said

    def query(self, query: str, runtime: FunctionsRuntime, *_: object) -> tuple[Any, ...]:
        return query, runtime, self._after, [self._said], {}


class Dojo:
    """The task that is open."""

    suite: TaskSuite[Any]
    user: BaseUserTask[Any]
    injection: BaseInjectionTask[Any] | None
    before: TaskEnvironment
    after: TaskEnvironment

    def __init__(self) -> None:
        self.made: list[FunctionCall] = []

    async def suites(self) -> Figures:
        """Of each suite its tools, its user tasks, and the injection tasks whose calls AgentDojo knows."""
        return {name: self._described(name, suite) for name, suite in SUITES.items()}

    def _described(self, name: str, suite: TaskSuite[Any]) -> Figures:
        environment = environment_of(name)
        return {
            "tools": [
                {"name": each.name, "description": each.description, "schema": each.parameters.model_json_schema()}
                for each in suite.tools
            ],
            "users": [*suite.user_tasks],
            "injections": [
                name
                for name, task in suite.injection_tasks.items()
                if task.ground_truth(environment.model_copy(deep=True))
            ],
        }

    async def begin(self, suite: str, user: str, injection: str = "") -> Figures:
        """Open a user task, with an injection task's goal where the task reads what others wrote."""
        self.suite, self.made = SUITES[suite], []
        self.user = self.suite.user_tasks[user]
        self.injection = self.suite.injection_tasks[injection] if injection else None
        places = ATTACKS[suite].attack(self.user, self.injection) if self.injection else {}
        text = f"{next(iter(places.values()))} {mark_of(injection)}" if places else ""
        self.before = environment_of(suite, tuple(places), text)
        self.after = self.user.init_environment(self.before.model_copy(deep=True))
        return {
            "prompt": self.user.PROMPT,
            "answer": self.user.GROUND_TRUTH_OUTPUT,
            "calls": self._calls(self.user),
            "injected": self._calls(self.injection) if self.injection else [],
            "mark": mark_of(injection) if injection else "",
        }

    def _calls(self, task: BaseUserTask[Any] | BaseInjectionTask[Any]) -> Sequence[Figures]:
        """The calls that do a task, their lists written as such, as AgentDojo reads models' calls."""
        return [
            {
                "name": call.function,
                "args": {
                    name: literal_eval(value) if isinstance(value, str) and is_string_list(value) else value
                    for name, value in call.args.items()
                },
            }
            for call in task.ground_truth(self.after.model_copy(deep=True))
        ]

    async def call(self, name: str, args: dict[str, Any]) -> Figures:
        """Run a tool."""
        self.made.append(FunctionCall(function=name, args=args))
        value, error = FunctionsRuntime(self.suite.tools).run_function(self.after, name, args)
        return {"text": error or tool_result_to_str(value), "failed": bool(error)}

    async def score(self, answer: str) -> Figures:
        """Whether the user's task is done, and whether the injected one is, by AgentDojo's own functions."""
        content = [text_content_block_from_string(answer)]
        said = ChatAssistantMessage(role="assistant", content=content, tool_calls=self.made)
        done, attacked = self.suite.run_task_with_pipeline(
            Played(self.after, said), self.user, self.injection, {}, environment=self.before.model_copy(deep=True)
        )
        return {"done": done, "attacked": bool(self.injection) and attacked}


def main() -> None:
    """Obey until standard input closes."""
    replies, dojo = own_stdout(), Dojo()
    commands = {"suites": dojo.suites, "begin": dojo.begin, "call": dojo.call, "score": dojo.score}
    with asyncio.Runner() as runner:
        obey(commands, (), runner, replies)


if __name__ == "__main__":
    main()
