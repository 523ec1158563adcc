"""How an answer is come by: a plan yields the tools it wants run, is sent their results, and returns the words."""

from collections.abc import Generator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from denizen.messages import ToolCall, ToolResult


@dataclass(frozen=True, slots=True)
class Want:
    """A wish to run a tool."""

    tool: str
    args: dict[str, Any]


Plan = Generator[Sequence[Want], Sequence[ToolResult], str]


class Trouble(Exception):
    """The plan can't be carried out; its text is the answer."""


def advance(plan: Plan, results: Mapping[str, ToolResult], offered: Set[str], mark: str) -> str | list[ToolCall]:
    """Go on with a plan as far as the results reach: the calls whose results it lacks, or its answer.

    `mark` begins the ids of the calls; a tool that isn't among the `offered` ones is a Trouble for the plan.
    """
    try:
        wants = next(plan)
        step = 0
        while True:
            missing = next((want.tool for want in wants if want.tool not in offered), "")
            calls = [ToolCall(f"{mark}-{step}-{n}", want.tool, want.args) for n, want in enumerate(wants)]
            if missing:
                wants = plan.throw(Trouble(_lacking(missing)))
            elif all(call.id in results for call in calls):
                wants = plan.send([results[call.id] for call in calls])
            else:
                return calls
            step += 1
    except StopIteration as over:
        return over.value
    except Trouble as trouble:
        return str(trouble)


def _lacking(tool: str) -> str:
    where = " Ask it in `denizen code`." if tool == "analyze" else ""
    return f"For that I need the tool `{tool}`, which isn't there in this session.{where}"


def run(tool: str, **args: Any) -> Generator[Sequence[Want], Sequence[ToolResult], str]:
    """The text that a tool answers. Raises Trouble with what it said where it failed."""
    [result] = yield [Want(tool, args)]
    if result.is_error:
        raise Trouble(failed(result, tool))
    return result.text


def failed(result: ToolResult, tool: str) -> str:
    """What a tool said that failed."""
    return f"That didn't work: `{tool}` says: {shorten(result.text.strip(), 600)}"


def shorten(text: str, limit: int) -> str:
    """The text, or its beginning with a note of what is missing."""
    return text if len(text) <= limit else f"{text[:limit].rstrip()} … ({len(text) - limit} more characters)"


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
