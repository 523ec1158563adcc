"""Two processes that have a session in turn: what either does, the other asks the model as if it had always been there.

One is this process, whose agent keeps in memory what it knows of closed sessions; the other is `denizen`, the program.
"""

import os
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
from tests.engine.scene import call
from tests.engine.twins import Twins, twins

from denizen.entries import CheckpointEntry
from denizen.testing import LoopbackOpenAI

Step = Callable[["Pair"], None]


class Pair:
    """This process's agent, and the program `denizen` with the same home and workspace."""

    def __init__(self, both: Twins, user: Path, python: Sequence[str]) -> None:
        self.twins = both
        self._python = python
        self._environ = os.environ | {"DENIZEN_HOME": str(both.home), "HOME": str(user)}

    def denizen(self, *arguments: str, piped: str = "", status: int = 0) -> str:
        """What it prints. The status is the one expected."""
        command = [*self._python, "-m", "denizen", *arguments]
        ran = subprocess.run(
            command,
            input=piped,
            capture_output=True,
            text=True,
            cwd=self.twins.workspace,
            env=self._environ,
            timeout=120,
            check=False,
        )
        assert ran.returncode == status, ran.stderr
        return ran.stdout.strip()


@pytest.fixture
async def pair(tmp_path: Path, loopback_openai: LoopbackOpenAI, warm_python: list[str]) -> AsyncIterator[Pair]:
    (tmp_path / "user").mkdir()
    async with twins(tmp_path, loopback_openai) as both:
        yield Pair(both, tmp_path / "user", warm_python)


def asks(pair: Pair) -> None:
    pair.twins.server.say("third")
    assert pair.denizen("ask", "--session", "work", "three") == "third"


def undoes(pair: Pair) -> None:
    pair.denizen("chat", "--session", "work", piped="/undo\n")


def undoes_and_redoes(pair: Pair) -> None:
    pair.denizen("chat", "--session", "work", piped="/undo\n/redo\n")


def says_it_otherwise(pair: Pair) -> None:
    pair.twins.server.say("SECOND")
    pair.denizen("chat", "--session", "work", piped="/undo\nTWO\n")


def compacts(pair: Pair) -> None:
    pair.twins.server.say(*[f"said {number}" for number in range(6)], "In short: it was counted.")
    pair.denizen("chat", "--session", "work", piped="go on\n" * 6 + "/compact\n")


def removes(pair: Pair) -> None:
    pair.denizen("sessions", "rm", "--yes", "work")


def begins_anew(pair: Pair) -> None:
    removes(pair)
    pair.twins.server.say("FIRST")
    pair.denizen("ask", "--session", "work", "ONE")


def forks(pair: Pair) -> None:
    name = pair.denizen("sessions", "fork", "work")
    pair.twins.server.say("third")
    pair.denizen("ask", "--session", name, "three")


DOES: Sequence[tuple[Step, list[str], list[str]]] = [
    (asks, ["second", "third"], []),
    (undoes, ["first"], ["two", "second"]),
    (undoes_and_redoes, ["first", "two", "second"], []),
    (says_it_otherwise, ["first", "TWO", "SECOND"], ["two", "second"]),
    (compacts, ["In short", "said 5"], ["first", "second"]),
    (removes, [], ["one", "first", "two", "second"]),
    (begins_anew, ["ONE", "FIRST"], ["one", "first", "two", "second"]),
    (forks, ["first", "second"], ["third"]),
]


@pytest.mark.parametrize(("does", "told", "untold"), DOES, ids=[does.__name__ for does, *_ in DOES])
async def test_what_another_process_did_is_what_the_model_is_asked_about(
    pair: Pair, does: Step, told: list[str], untold: list[str]
) -> None:
    does(pair)
    await pair.twins.the_model_is_asked(told, untold)


@pytest.mark.parametrize("answer", ["yes", "no"])
async def test_question_that_another_process_answered_is_answered(pair: Pair, answer: str) -> None:
    parked = await pair.twins.turn(pair.twins.kept, "three", call(("write", {"path": "asked.txt", "content": "x"})))
    assert parked.stop_reason == "parked"
    pair.twins.server.say("So be it.")
    assert pair.denizen("answer", "work", answer) == "So be it."
    assert (pair.twins.workspace / "asked.txt").exists() == (answer == "yes")
    told = "asked.txt" if answer == "yes" else "the user said no"
    await pair.twins.the_model_is_asked(["second", told, "So be it."])


async def test_conversation_that_another_process_took_back_with_the_files_is_taken_back(pair: Pair) -> None:
    twins = pair.twins
    await twins.turn(twins.kept, "three", call(("write", {"path": "made.txt", "content": "x"})), "third")
    [before, _] = [e.snapshot for e in await twins.kept.store.read("work") if isinstance(e, CheckpointEntry)]
    pair.denizen("checkpoints", "restore", "--session", "work", "--yes", before)
    assert not (twins.workspace / "made.txt").exists()
    await twins.the_model_is_asked(["second", "three"], ["made.txt", "third"])
