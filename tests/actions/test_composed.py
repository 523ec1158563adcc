"""Several action formats in one: who has precedence, and what of each counts."""

import re
from collections.abc import Sequence

from tests.actions.shell.offer import TOOLS
from tests.actions.streams import shown

from denizen.actions import Composed, Native, Shell
from denizen.messages import AssistantMessage, Message, Text, Thinking, ToolCall, ToolResult, UserMessage, UserPart
from denizen.ports import (
    NOTHING_SEEN,
    ActionFormat,
    Directive,
    Intent,
    ModelRequest,
    SeenText,
    StreamFilter,
    Tool,
    Toolset,
)

_LINE = re.compile(r"^(GOAL|SCRIPT): (.*)\n?", re.MULTILINE)
_RECOVERABLE = '<tool_call>{"name": "view", "arguments": {"path": "y"}}</tool_call>'


class Lines:
    """`GOAL: …` is a directive, `SCRIPT: PATH` a call of `view`."""

    name = "lines"
    lists_tools = False

    def extra_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        return ()

    def prepare(self, request: ModelRequest, tools: Toolset) -> ModelRequest:
        return request

    def read(self, message: AssistantMessage, tools: Toolset, seen: SeenText = NOTHING_SEEN) -> Intent:
        said = _LINE.findall(message.text)
        scripts = [
            ToolCall(f"line-{n}", "view", {"path": text}) for n, (kind, text) in enumerate(said) if kind != "GOAL"
        ]
        goals = [Directive("goal", text) for kind, text in said if kind == "GOAL"]
        return Intent(scripts, _LINE.sub("", message.text), directives=goals)

    def stream_filter(self, tools: Toolset) -> StreamFilter | None:
        return None

    def report(self, results: Sequence[ToolResult]) -> Sequence[Message]:
        ours: list[UserPart] = [Text(result.text) for result in results if result.call_id.startswith("line-")]
        others = [result for result in results if not result.call_id.startswith("line-")]
        return [*others, *([UserMessage(ours)] if ours else [])]

    def show(self, call: ToolCall, tools: Toolset) -> str:
        return f"SCRIPT: {call.args['path']}"


def read(actions: ActionFormat, text: str, *calls: ToolCall) -> Intent:
    return actions.read(AssistantMessage([Thinking("Hm."), Text(text), *calls]), TOOLS)


def test_the_calls_of_the_first_format_that_has_any_run_and_the_others_are_reported() -> None:
    intent = read(Composed(Native(), Lines()), "Off I go.\nSCRIPT: x\n", ToolCall("1", "view", {"path": "y"}))
    assert [call.id for call in intent.calls] == ["1"]
    assert intent.problems == ["The calls in the lines format were not run: the reply also had native calls."]
    assert intent.reply == "Off I go.\n"


def test_calls_of_a_later_format_run_where_the_earlier_have_none() -> None:
    intent = read(Composed(Native(), Lines()), "Off I go.\nSCRIPT: x\n")
    assert [call.args for call in intent.calls] == [{"path": "x"}]
    assert not intent.problems


def test_directives_and_thoughts_of_all_formats_are_kept() -> None:
    intent = read(Composed(Native(), Lines()), f"<think>So.</think>GOAL: tea\n{_RECOVERABLE}")
    assert intent.directives == [Directive("goal", "tea")]
    assert intent.thoughts == "Hm.\nSo."
    assert [call.args for call in intent.calls] == [{"path": "y"}]


def test_precedence_is_the_order_of_composition() -> None:
    text = f"$(view x)\n{_RECOVERABLE}"
    [first] = read(Composed(Shell(), Native()), text).calls
    [second] = read(Composed(Native(), Shell()), text).calls
    assert (first.args, second.args) == ({"path": "x"}, {"path": "y"})


def test_an_answer_ends_the_turn_whichever_format_gives_it() -> None:
    for formats in ((Lines(), Shell(), Native()), (Native(), Lines(), Shell())):
        intent = read(Composed(*formats), "GOAL: tea\n$(done It is tea.)")
        assert (intent.ends_turn, intent.reply, list(intent.directives)) == (
            True,
            "It is tea.",
            [Directive("goal", "tea")],
        )


def test_the_formats_name_themselves_bring_their_tools_and_prepare_in_turn() -> None:
    actions = Composed(Native(), Shell())
    request = actions.prepare(ModelRequest([], "You are an agent."), TOOLS)
    assert request.tools == TOOLS.schemas
    assert "<commands>" in request.system
    assert (actions.name, actions.lists_tools) == ("native+shell", True)
    assert [tool.name for tool in actions.extra_tools([*TOOLS])] == ["help"]
    assert not Composed(Native(), Lines()).lists_tools


def test_results_are_reported_by_the_format_that_made_the_calls() -> None:
    actions = Composed(Native(), Shell(), Lines())
    for text in ("$(view x)", "SCRIPT: x", _RECOVERABLE):
        [call] = read(actions, text).calls
        [message] = actions.report([ToolResult(call.id, "view", [Text("main()")])])
        assert isinstance(message, UserMessage)
    native = ToolResult("1", "view", [Text("main()")])
    assert actions.report([native]) == [native]


def test_what_any_format_holds_back_does_not_stream() -> None:
    filtered = Composed(Native(), Shell(), Lines()).stream_filter(TOOLS)
    assert filtered
    assert shown(filtered, ["I look. ", "$(view ", "x)"]) == "I look. "
    assert Composed(Lines(), Lines()).stream_filter(TOOLS) is None
