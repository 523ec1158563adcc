"""What models get wrong in their own forms: the call is read where it is clear, and the model sees what wasn't."""

import pytest
from tests.actions.recovery.offer import TOOLS, called, recover

from denizen.actions import Native, recover_calls
from denizen.actions.recovery.streaming import HoldCalls, Openings
from denizen.messages import AssistantMessage, Text
from denizen.ports import Toolset
from denizen.tools.function import tool

BASH = ("bash", {"command": "ls"})
READ = ("read", {"path": "a.txt", "lines": 3})


@pytest.mark.parametrize(
    "text",
    [
        "<|tool_call_start|>\nread('a.txt', 3)\nbash(command='ls')\n<|tool_call_end|>",
        "<|tool_call_start|>[read('a.txt', 3)\nbash(command='ls')]<|tool_call_end|>",
        "<|python_start|>\n[read('a.txt', 3)]\n[bash(command='ls')]\n<|python_end|>",
        "<tool_call>\nread('a.txt', 3)\nbash(command='ls')\n</tool_call>",
        "<|python_tag|>read.call(path='a.txt', lines=3); bash.call(command='ls')",
    ],
)
def test_several_pythonic_calls_may_share_a_wrapper(text: str) -> None:
    assert called(text) == [READ, BASH]


@pytest.mark.parametrize(
    "text",
    [
        "<function=read>\n<parameter=path>\na.txt\n<parameter=lines>\n3\n</parameter>\n</function>",
        '<invoke name="read"><parameter name="path">a.txt<parameter name="lines">3</parameter></invoke>',
        (
            "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a.txt\n"
            "<arg_key>lines</arg_key>\n<arg_value>3</arg_value>\n</tool_call>"
        ),
        (
            '<|open|>call tool="read"<|sep|><|open|>argument key="path"<|sep|>a.txt'
            '<|open|>argument key="lines"<|sep|>3<|close|>argument<|sep|><|close|>call<|sep|>'
        ),
    ],
    ids=["qwen", "invoke", "glm", "kimi"],
)
def test_a_parameter_without_its_end_tag_ends_where_the_next_begins(text: str) -> None:
    assert called(text) == [READ]


def test_a_tag_that_the_tool_knows_nothing_of_is_part_of_the_value() -> None:
    text = "<function=bash><parameter=command>echo <parameter=colour> x</parameter></function>"
    assert called(text) == [("bash", {"command": "echo <parameter=colour> x"})]


BROKEN = {
    "hermes": (
        '<tool_call>{"name": "read", "arguments": {"path": }}</tool_call>',
        '<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>',
    ),
    "qwen": (
        "<tool_call><function=read><parameter=path</function></tool_call>",
        "<tool_call><function=bash><parameter=command>ls</parameter></function></tool_call>",
    ),
    "mistral": ('[TOOL_CALLS]read[ARGS]{"path": ', '[TOOL_CALLS]bash[ARGS]{"command": "ls"}'),
    "mistral list": (
        '[TOOL_CALLS][{"name": "read", "arguments": {"path": }},',
        '{"name": "bash", "arguments": {"command": "ls"}}]',
    ),
    "deepseek": (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>{"path": <｜tool▁call▁end｜>',
        '<｜tool▁call▁begin｜>bash<｜tool▁sep｜>{"command": "ls"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    ),
    "kimi": (
        (
            '<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{"path": '
            "<|tool_call_end|>"
        ),
        (
            '<|tool_call_begin|>functions.bash:1<|tool_call_argument_begin|>{"command": "ls"}<|tool_call_end|>'
            "<|tool_calls_section_end|>"
        ),
    ),
    "lfm": (
        "<|tool_call_start|>[read(path=)]<|tool_call_end|>",
        "<|tool_call_start|>[bash(command='ls')]<|tool_call_end|>",
    ),
    "pythonic list": ("<|tool_call_start|>[read(path=), ", "bash(command='ls')]<|tool_call_end|>"),
    "gemma": ("<|tool_call>call:read{path:<tool_call|>", '<|tool_call>call:bash{command:<|"|>ls<|"|>}<tool_call|>'),
    "glm": (
        "<tool_call>read\n<arg_key>path</arg_key>\n</tool_call>",
        "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>",
    ),
}


@pytest.mark.parametrize("family", BROKEN)
def test_a_call_next_to_a_broken_one_is_run(family: str) -> None:
    broken, good = BROKEN[family]
    assert called(f"{broken}\n{good}") == [BASH]
    if "list" not in family:
        assert called(f"{good}\n{broken}") == [BASH]


@tool
def read(path: str) -> str:
    """Read a file."""
    return path


@tool
def bash(command: str) -> str:
    """Run a command."""
    return command


@pytest.mark.parametrize("family", BROKEN)
def test_the_model_is_told_why_the_other_was_not(family: str) -> None:
    intent = Native().read(AssistantMessage([Text("\n".join(BROKEN[family]))]), Toolset([read, bash]))
    [problem] = intent.problems
    assert problem.startswith("Not run: ")
    assert "can't be read" in problem


def test_so_it_is_of_a_tool_that_isnt_there() -> None:
    fly = '<tool_call>{"name": "fly", "arguments": {}}</tool_call>'
    text = f"{fly}\n{BROKEN['hermes'][1]}"
    intent = Native().read(AssistantMessage([Text(text)]), Toolset([bash]))
    assert intent.problems == ("Not run: unknown tool 'fly'.",)


@pytest.mark.parametrize(
    ("text", "answer", "thought"),
    [
        ("analysisThe user wants 4.assistantfinalIt is 4.", "It is 4.", "The user wants 4."),
        ("analysis\nHm.\nassistant\nfinal\nIt is 4.", "It is 4.", "Hm."),
        ("analysisHm.assistantcommentaryI'll add.assistantfinalIt is 4.", "It is 4.", "Hm.\nI'll add."),
        ("assistantfinalIt is 4.", "It is 4.", ""),
        ("analysis of the word assistantfinal follows", "analysis of the word assistantfinal follows", ""),
        ("finally, an answer of the assistant", "finally, an answer of the assistant", ""),
    ],
)
def test_of_harmonys_channels_without_their_tokens_only_the_final_is_shown(
    text: str, answer: str, thought: str
) -> None:
    got = recover(text)
    assert (got.text, got.thinking) == (answer, thought)


def test_what_they_call_is_called() -> None:
    got = recover('analysisWe need ls.assistantcommentary to=functions.bash json{"command": "ls"}')
    assert ([(call.name, call.args) for call in got.calls], got.text, got.thinking) == ([BASH], "", "We need ls.")


@pytest.mark.parametrize("size", [1, 3, 100])
def test_their_thoughts_do_not_stream(size: int) -> None:
    spoken, text = (
        HoldCalls(Openings([tool["name"] for tool in TOOLS])),
        "analysisThe user wants 4.assistantfinalIt is 4.",
    )
    assert "".join(spoken.feed(text[at : at + size]) for at in range(0, len(text), size)) == "It is 4."


NUMBERS = {"type": "array", "items": {"type": "integer"}}
PICK = {
    "name": "pick",
    "parameters": {
        "type": "object",
        "properties": {
            "numbers": {"anyOf": [NUMBERS, {"type": "null"}]},
            "pairs": {
                "oneOf": [{"type": "array", "items": {"properties": {"n": {"type": "integer"}}}}, {"type": "string"}]
            },
            "one": {"anyOf": [{"type": "object", "properties": {"n": {"type": "integer"}}}, {"type": "null"}]},
            "words": {"type": "array", "items": {"type": "string"}},
        },
    },
}


def _picked(text: str) -> dict[str, object]:
    [call] = recover_calls(text, [PICK]).calls
    return call.args


def test_items_of_a_union_are_read_by_its_schema() -> None:
    args = '{"numbers": ["1", 2.0], "pairs": [{"n": "3"}], "one": {"n": "4"}}'
    wanted = {"numbers": [1, 2], "pairs": [{"n": 3}], "one": {"n": 4}}
    assert _picked(f'<tool_call>{{"name": "pick", "arguments": {args}}}</tool_call>') == wanted
    assert _picked('<function=pick><parameter=numbers>["1", "2"]</parameter></function>') == {"numbers": [1, 2]}


@pytest.mark.parametrize("written", ["numbers={1, 2}, words={'a', 'b'}", "numbers=(1, 2), words=('a', 'b')"])
def test_sets_and_tuples_of_pythonic_calls_are_lists(written: str) -> None:
    wanted = {"numbers": [1, 2], "words": ["a", "b"]}
    assert _picked(f"<|tool_call_start|>[pick({written})]<|tool_call_end|>") == wanted


@pytest.mark.parametrize("written", ["call:pick{1, 2}", 'pick[ARGS]{"numbers"}', "<function=pick>{1}</function>"])
def test_a_set_in_place_of_the_arguments_is_no_call(written: str) -> None:
    assert recover_calls(f"<tool_call>{written}</tool_call>", [PICK]).calls == []


def test_a_set_that_is_cut_off_is_no_value() -> None:
    assert recover_calls("<|tool_call_start|>[pick(numbers={1, 2", [PICK]).calls == []


@pytest.mark.parametrize("command", ["echo 'hi' there", "echo 'a', 'b' done", "python -c 'print(\"x\")'", "f('a') b"])
def test_quotes_in_quotes_of_pythonic_calls_belong_to_the_value(command: str) -> None:
    assert called(f"<|tool_call_start|>[bash(command='{command}')]<|tool_call_end|>") == [
        ("bash", {"command": command})
    ]


LIST = '[\n    {"tool_name": "bash", "parameters": {"command": "ls"}}\n]'
KIMI = "<|tool_call_begin|>functions.{}:{}<|tool_call_argument_begin|>{}<|tool_call_end|>"


@pytest.mark.parametrize("text", [f"Action:```json\n{LIST}```", f"Plan: look.\nAction: ```json\n{LIST}```"])
def test_a_fence_may_end_on_the_last_line_of_its_calls(text: str) -> None:
    assert called(text) == [("bash", {"command": "ls"})]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('Let me see.>>>read\n{"path": "a.txt", "lines": 3}>>>bash\n{"command": "ls"}', "Let me see."),
        ('read\n{"path": "a.txt", "lines": 3}>>>bash\n{"command": "ls"}', ""),
    ],
)
def test_functionary_calls_follow_words_and_each_other_without_a_line_end(text: str, words: str) -> None:
    got = recover(text)
    assert [(call.name, call.args) for call in got.calls] == [READ, BASH]
    assert got.text == words


@pytest.mark.parametrize("broken_first", [True, False])
def test_a_broken_call_in_a_section_is_reported_and_the_good_ones_run(broken_first: bool) -> None:
    calls = [KIMI.format("read", 0, '{"path": oops'), KIMI.format("bash", 1, '{"command": "ls"}')]
    section = "".join(calls if broken_first else reversed(calls))
    got = recover(f"On it.<|tool_calls_section_begin|>{section}<|tool_calls_section_end|>")
    assert [(call.name, call.args) for call in got.calls] == [BASH]
    assert got.text == "On it."
    assert len(got.broken) == 1
    assert "read" in got.broken[0]


def test_quotes_inside_a_quoted_argument_stay_in_it() -> None:
    text = '<|tool_call_start|>[bash(command="echo a, "b=1", c")]<|tool_call_end|>'
    assert called(text) == [("bash", {"command": 'echo a, "b=1", c'})]


@pytest.mark.parametrize("kind", [{"type": ["array", "null"]}, {"anyOf": [{"type": "string"}, {"type": "array"}]}])
def test_items_are_a_list_where_the_schema_allows_other_things_too(kind: dict[str, object]) -> None:
    tag = "]<]minimax[>["
    items = "".join(f"{tag}<item>{word}{tag}</item>" for word in ("a", "b"))
    text = (
        f'{tag}<tool_call>\n{tag}<invoke name="tag">{tag}<items>{items}{tag}</items>{tag}</invoke>\n{tag}</tool_call>'
    )
    offered = [{"name": "tag", "parameters": {"type": "object", "properties": {"items": kind}}}]
    assert [call.args for call in recover_calls(text, offered).calls] == [{"items": ["a", "b"]}]
