"""A call as the command that asks for it."""

import pytest
from tests.actions.shell.offer import TOOLS, args, read

from denizen.actions import Shell
from denizen.messages import ToolCall
from denizen.ports import MISUSED


@pytest.mark.parametrize(
    ("name", "given", "command"),
    [
        ("view", {"path": "src/a.py"}, "view src/a.py"),
        ("view", {"path": "a b", "types_only": True, "depth": 2}, "view 'a b' --types-only --depth 2"),
        ("view", {"path": "--odd"}, "view '--odd'"),
        ("grep", {"pattern": "it's", "mode": "files"}, 'text-search "it\'s" --mode files'),
        ("write", {"path": "f", "content": "a\n\tit's\\\n"}, "write f $'a\\n\\tit\\'s\\\\\\n'"),
        ("bash", {"command": "a 'b)' | c", "timeout": 5}, "run --timeout 5 a 'b)' | c"),
        ("bash", {"command": "a\nb"}, "run $'a\\nb'"),
        ("bash", {"command": "'a b'"}, "run \"'a b'\""),
        ("note", {"text": "it's (all) 1) fine"}, "note it's (all) 1) fine"),
        ("remember", {"text": "a (b", "weight": 0.5}, "memorize 'a (b' --weight 0.5"),
        ("keep", {"outputs": [1, 3]}, "keep 1 3"),
        ("keep", {"outputs": "all"}, "keep all"),
        ("tag", {"names": ["a"], "marks": {"m": 1}}, "tag a --marks '{\"m\":1}'"),
        ("help", {"command": "view"}, "help view"),
        ("clear", {}, "clear"),
    ],
)
def test_it_is_one_line_that_reads_as_the_same_call(name: str, given: dict[str, object], command: str) -> None:
    shown = Shell().show(ToolCall("1", name, given), TOOLS)
    assert shown == command
    assert args(f"$({shown})") == given


def test_of_a_misuse_it_is_the_name() -> None:
    [call] = read("$(view)").calls
    assert MISUSED in call.args
    assert Shell().show(call, TOOLS) == "view"
