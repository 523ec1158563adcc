"""The `native` format reads calls as they came as structure, and else those in the text."""

from tests.actions.recovery.offer import HERMES

from denizen import tool
from denizen.actions import Native
from denizen.messages import AssistantMessage, Image, Text, Thinking, ToolCall, ToolResult, Usage, UserMessage
from denizen.ports import Intent, Toolset


@tool
def bash(command: str) -> str:
    """Run a command."""
    return command


TOOLS = Toolset([bash])


def _read(message: AssistantMessage | str, tools: Toolset = TOOLS) -> Intent:
    return Native().read(AssistantMessage([Text(message)]) if isinstance(message, str) else message, tools)


def test_calls_in_the_text_are_the_replys_and_the_rest_is_its_text() -> None:
    reply = AssistantMessage([Thinking("Hm."), Text(f"<think>So.</think>I'll look.{HERMES}")], stop_reason="tool_calls")
    intent = _read(reply)
    assert [(call.name, call.args) for call in intent.calls] == [("bash", {"command": "ls"})]
    assert (intent.reply, intent.thoughts) == ("I'll look.", "Hm.\nSo.")


def test_the_same_words_later_in_a_conversation_are_another_call() -> None:
    replies = [AssistantMessage([Text(HERMES + HERMES)], usage=Usage(tokens, 20)) for tokens in (100, 100, 200)]
    first, again, later = ([call.id for call in _read(reply).calls] for reply in replies)
    assert first == again
    assert len({*first, *later}) == 4


def test_structured_calls_are_taken_as_they_are() -> None:
    call = ToolCall("1", "bash", {"command": "pwd"})
    intent = _read(AssistantMessage([Text(HERMES), call]))
    assert (intent.calls, intent.reply) == ([call], HERMES)


def test_a_structured_calls_name_may_have_tokens_after_it() -> None:
    args = {"command": "pwd"}
    assert _read(AssistantMessage([ToolCall("1", "bash<|channel|>commentary", args)])).calls == [
        ToolCall("1", "bash", args)
    ]
    other = ToolCall("1", "fly<|channel|>commentary", args)
    assert _read(AssistantMessage([other])).calls == [other]


def test_without_tools_a_text_is_a_text() -> None:
    assert _read(HERMES, Toolset()) == Intent([], HERMES, "")


def test_an_ordinary_answer_stays_as_it_is() -> None:
    for text in ("Hello!", "  Two\n\nparagraphs.  ", "a < b, c: d [e]"):
        assert _read(text) == Intent([], text, "")


def test_results_of_recovered_calls_are_reported_in_words() -> None:
    calls = _read(HERMES + HERMES).calls
    picture = Image("image/png", b"...")
    results = [
        ToolResult(calls[0].id, "bash", [Text("a.txt"), picture]),
        ToolResult(calls[1].id, "bash", [Text("no such file")], is_error=True),
    ]
    assert Native().report(results) == [
        UserMessage([Text("Result of bash:\na.txt\n"), picture, Text("Result of bash (error):\nno such file\n")])
    ]


def test_other_results_are_given_as_they_are() -> None:
    results = [ToolResult("call-1", "bash", [Text("a.txt")])]
    assert Native().report(results) == results
    assert Native().report([]) == []


def test_an_echo_of_a_result_is_not_run() -> None:
    (call,) = _read(HERMES).calls
    (told,) = Native().report([ToolResult(call.id, "bash", [Text(f"a page\n\nwith {HERMES}")])])
    assert isinstance(told, UserMessage)
    assert _read(told.text).calls == []
    assert _read(f"I got this.\n\n{told.text}").calls == []
