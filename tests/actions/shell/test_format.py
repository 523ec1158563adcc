"""The format as the engine uses it: what the model reads, what a reply means, how results come back."""

import msgspec
from tests.actions.shell.offer import TOOLS, read

from denizen.actions import Shell
from denizen.actions.shell.format import names_written
from denizen.messages import AssistantMessage, Image, Text, Thinking, ToolCall, ToolResult, Usage, UserMessage
from denizen.ports import ModelRequest, Toolset


def prepared(*messages: ToolResult, tools: Toolset = TOOLS) -> ModelRequest:
    return Shell().prepare(ModelRequest([*messages], "You are an agent.", stream=True), tools)


def test_the_grammar_follows_the_prompt_and_there_are_no_schemas() -> None:
    request = prepared()
    assert request.system.startswith("You are an agent.\n\n<commands>\n")
    assert request.tools == ()


def test_the_grammar_shows_each_command_with_what_it_takes() -> None:
    lines = prepared().system.splitlines()
    assert "$(view PATH [--types-only] [--depth N] [--lines TEXT]) Show a file" in lines
    assert "$(text-search PATTERN [PATH] [--mode files|lines] [--ignore-case]) Search files" in lines
    assert "$(run COMMAND [--timeout N]) Run a command" in lines
    assert "$(keep [OUTPUTS…]) Keep outputs" in lines
    assert "$(task [add|list] [TEXT] [--under TEXT]) Keep a plan" in lines
    assert "$(tag NAMES… [--marks JSON] [--sizes VALUE…]) Tag things" in lines
    assert "$(clear) Clear everything" in lines


def test_working_memory_is_explained_where_there_is_one() -> None:
    assert "$(keep 1 3)" in prepared().system
    assert "$(keep" not in prepared(tools=Toolset()).system


def test_the_same_tools_give_the_same_bytes() -> None:
    again = Toolset(TOOLS)
    assert prepared(tools=again).system == prepared().system


def test_structured_calls_of_earlier_go_with_their_schemas() -> None:
    assert prepared(ToolResult("c1", "view", [Text("x")])).tools == TOOLS.schemas


def test_the_same_reply_means_the_same_and_no_two_calls_have_one_id() -> None:
    first, again = read("$(view a) $(view a)"), read("$(view a) $(view a)")
    assert first == again
    assert len({call.id for call in first.calls}) == 2


def test_another_call_of_the_model_has_other_ids_though_it_says_the_same() -> None:
    replies = [AssistantMessage([Text("$(view a)")], usage=Usage(tokens)) for tokens in (10, 20)]
    assert len({Shell().read(reply, TOOLS).calls[0].id for reply in replies}) == 2


def test_a_reply_that_was_stored_and_loaded_has_the_same_ids() -> None:
    reply = AssistantMessage([Text("$(view a)")], "m", Usage(1, 2, cost_usd=0.1))
    loaded = msgspec.json.decode(msgspec.json.encode(reply), type=AssistantMessage)
    assert Shell().read(loaded, TOOLS) == Shell().read(reply, TOOLS)


def test_done_ends_with_its_answer_and_the_last_one_counts() -> None:
    found = read("$(done Not yet) $(view a)\n$(done It's (really)\ndone.)")
    assert found.ends_turn
    assert found.reply == "It's (really)\ndone."
    assert [call.name for call in found.calls] == ["view"]


def test_an_answer_without_an_end_is_one() -> None:
    found = read("$(done Call f( to start.")
    assert (found.ends_turn, found.reply) == (True, "Call f( to start.")


def test_an_answer_does_not_rest_on_what_was_not_run() -> None:
    assert not read("$(view x --bad) $(done It is fine.)").ends_turn
    assert not read("$(view x)" * 11 + "$(done It is fine.)").ends_turn
    assert not read("$(view x)\nOutput:\nmain.rs\n$(done It is fine.)").ends_turn


def test_of_more_than_ten_commands_the_rest_is_named() -> None:
    found = read(" ".join(f"$(view {number})" for number in range(12)))
    assert len(found.calls) == 10
    assert found.problems == ["Not run, because a reply may have 10 commands: $(view 10), $(view 11)."]


def test_structured_calls_override_commands() -> None:
    structured = ToolCall("c1", "view", {"path": "a"})
    found = Shell().read(AssistantMessage([Text("$(view b)"), structured]), TOOLS)
    assert found.calls == [structured]
    assert "not run" in found.problems[0]


def test_calls_that_a_server_left_in_the_text_are_found() -> None:
    text = '<tool_call>{"name": "view", "arguments": {"path": "a"}}</tool_call>'
    found = Shell().read(AssistantMessage([Text(text)]), TOOLS)
    assert [(call.name, call.args) for call in found.calls] == [("view", {"path": "a"})]
    [told] = Shell().report([ToolResult(found.calls[0].id, "view", [Text("x")])])
    assert isinstance(told, UserMessage)


def test_thoughts_are_no_part_of_the_answer() -> None:
    found = Shell().read(AssistantMessage([Thinking("$(view a)?"), Text("$(done b)")]), TOOLS)
    assert (found.thoughts, found.reply, found.calls) == ("$(view a)?", "b", [])


def test_results_come_back_in_the_order_of_their_commands() -> None:
    first, second = read("$(view a) $(grep b)").calls
    results = [
        ToolResult(second.id, "grep", [Text("none")], is_error=True),
        ToolResult(first.id, "view", [Text("see: "), Image("image/png", b"png"), Text("so")]),
    ]
    [told] = Shell().report(results)
    assert isinstance(told, UserMessage)
    assert told.content == [
        Text("[1] $ view\nsee: "),
        Image("image/png", b"png"),
        Text("so"),
        Text("\n\n[2] $ grep (failed)\nnone"),
    ]


def test_results_of_structured_calls_come_back_as_they_are() -> None:
    results = [ToolResult("c1", "view", [Text("x")])]
    assert [*Shell().report(results)] == results


def test_what_a_reply_calls_its_tools_is_known_by_the_ids_of_its_calls() -> None:
    reply = AssistantMessage([Text("$(text-search x) $(done Then.) $(grep y)")], "m", Usage(1, 2))
    calls = Shell().read(reply, TOOLS).calls
    assert [names_written(reply)[call.id] for call in calls] == ["text-search", "grep"]
    assert [call.name for call in calls] == ["grep", "grep"]
