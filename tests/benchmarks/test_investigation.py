"""The investigation that counts tokens: its answer must follow from what the model sees, and be true."""

from pathlib import Path

import aiohttp
import pytest
from benchmarks.investigation.facts import FACTS, Fact
from benchmarks.investigation.play import REPLIES, WRITTEN_FOR, play
from benchmarks.scene import WrongAnswer

from denizen.actions import Shell
from denizen.context import WorkingMemory
from denizen.ports import ActionFormat, Toolset

pytestmark = pytest.mark.skipif(aiohttp.__version__ != WRITTEN_FOR, reason="it is about another version of aiohttp")


def forgetful(actions: ActionFormat, tools: Toolset) -> WorkingMemory:
    """A working memory whose model has nothing to keep and note with."""
    return WorkingMemory(actions, tools)


def test_the_answer_follows_from_what_was_kept(tmp_path: Path) -> None:
    counts = play(Shell(), WorkingMemory, tmp_path)
    assert counts.calls == len(REPLIES) + 1 == 30
    assert counts.input == counts.cached + counts.fresh
    assert counts.last < counts.input / counts.calls * 2


def test_where_nothing_was_kept_there_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(WrongAnswer, match="not seen"):
        play(Shell(), forgetful, tmp_path)


def test_a_fact_is_looked_up_where_it_should_be(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "class A:\n    def f(self, x: int = 5):\n        # four\n        return (x +\n     1)\n"
    )
    assert Fact("`x: int = 5` and `return (x + 1)`", ["a.py/A/f", "a.py"]).wrong(tmp_path) == []
    assert Fact("`x: int = 4`", ["a.py/A/f"]).wrong(tmp_path) == ["x: int = 4 in a.py/A/f"]


def test_every_quotation_of_the_answer_has_its_place() -> None:
    installed = Path(aiohttp.__file__).parent
    assert [wrong for fact in FACTS for wrong in fact.wrong(installed)] == []
