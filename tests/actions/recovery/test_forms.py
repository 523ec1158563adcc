"""One call in every form."""

import pytest
from tests.actions.recovery.offer import FORMS, HERMES, JSON, SHOWN, called, recover

CALL = ("bash", {"command": "ls"})


@pytest.mark.parametrize("form", FORMS)
def test_a_reply_that_is_a_call_says_nothing_else(form: str) -> None:
    assert called(FORMS[form]) == [CALL]
    assert (recover(FORMS[form]).text, recover(FORMS[form]).thinking) == ("", "")


@pytest.mark.parametrize("form", [form for form in FORMS if form not in SHOWN])
def test_words_before_the_call_are_the_reply(form: str) -> None:
    got = recover(f"I'll take a look.\n\n{FORMS[form]}")
    assert [(call.name, call.args) for call in got.calls] == [CALL]
    assert got.text == "I'll take a look."


@pytest.mark.parametrize("thought", ["<think>Hm. {}</think>", "Hm. {}</think>", "[THINK]Hm. {}[/THINK]"])
def test_a_call_in_a_thought_is_not_run(thought: str) -> None:
    for form in FORMS.values():
        got = recover(thought.format(form) + "\nNo.")
        assert (got.calls, got.text) == ([], "No.")


@pytest.mark.parametrize("form", FORMS)
def test_a_call_of_a_tool_that_isnt_there_is_not_one(form: str) -> None:
    assert called(FORMS[form].replace("bash", "rm_rf")) == []


def test_calls_after_a_thought_that_never_ends_are_run() -> None:
    got = recover(f"<think>I need the folder.\n{HERMES}")
    assert [(call.name, call.args) for call in got.calls] == [CALL]
    assert (got.thinking, got.text) == ("I need the folder.", "")


def test_a_second_end_of_a_thought_ends_nothing() -> None:
    got = recover(f"<think>Hm.</think>It says a</think> {HERMES}")
    assert ([(call.name, call.args) for call in got.calls], got.thinking) == ([CALL], "Hm.")


def test_several_calls_keep_their_order() -> None:
    read = '<tool_call>{"name": "read", "arguments": {"path": "a"}}</tool_call>'
    assert called(f"{HERMES}\n{read} and {HERMES}") == [CALL, ("read", {"path": "a"}), CALL]


def test_a_call_of_an_unknown_tool_stays_readable() -> None:
    unknown = '<|tool_call>call:fly{to:<|"|>Rome<|"|>}<tool_call|>'
    assert recover(f"I'd fly. {unknown}").text == "I'd fly. call:fly{to:Rome}"


def test_what_a_model_says_after_its_call_is_kept() -> None:
    assert recover(f"Before. {HERMES} After.").text == "Before.  After."


def test_a_call_without_its_end_is_a_call_where_its_arguments_are_whole() -> None:
    assert called(f"<tool_call>{JSON}") == [CALL]
    assert called('<tool_call>{"name": "bash", "arguments": {"command": "ls"') == [CALL]
    assert called('<tool_call>{"name": "bash", "arguments": {"command": "l') == []
    assert called('<tool_call>{"name": "bash", "arguments": {"command": ') == []
    assert called('<tool_call>{"name": "bash", "arguments": {') == []


def test_a_program_text_call_ends_the_reply() -> None:
    assert called("Let me look.\nread(path='a')\n") == [("read", {"path": "a"})]
    assert called("read(path='a')\n\nreads the file a.") == []
    assert called("I ran read(path='a') before.") == []
    assert called("print(path='a')") == []


def test_beside_calls_in_marks_others_are_words() -> None:
    for bare in ("read(path='a')", "TOOL: read(path='a')", JSON.replace("ls", "pwd")):
        assert called(f"{HERMES}\nI mean\n\n{bare}") == [CALL]
        assert called(f"{bare}\n\n{HERMES}") == [CALL]
        assert len(called(bare)) == 1


def test_an_object_within_a_sentence_is_no_call() -> None:
    assert called(f"The body {JSON} is sent.") == []
    assert called(f'{{"result": {JSON}}}') == []
    assert called('{"name": "bash"}') == []
    assert called('{"name": "bash", "arguments": "ls"}') == []


def test_a_message_to_a_tool_of_ones_own_invention_is_shown_to_nobody() -> None:
    got = recover(
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant to=fly.away<|channel|>commentary<|message|>up"
    )
    assert (got.calls, got.text, got.thinking) == ([], "", "Hm.")


def test_a_tools_result_in_a_message_is_nobodys_call() -> None:
    result = f"<|start|>functions.read to=assistant<|channel|>commentary<|message|>{HERMES}<|end|>"
    assert called(f"{result}<|start|>assistant<|channel|>final<|message|>Done.") == []
