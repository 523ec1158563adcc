"""The log of a run, and what the next one takes over."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from denizen.worlds.moo.listener import Kind
from denizen.worlds.moo.session_log import BUILT, CALL_DONE, PriorSession, SessionLog, read_prior_session

AT = datetime(2026, 11, 21, 9, 30, 5, tzinfo=UTC)


def logged(folder: Path, *lines: tuple[Kind, str], at: datetime = AT) -> Path:
    log = SessionLog(folder, at)
    for kind, text in lines:
        log.write(kind, text, at)
    log.close()
    return log.path


def test_each_line_has_its_time_and_kind(tmp_path: Path) -> None:
    path = logged(tmp_path, ("action", "look"), ("server", "A hut.\nA door."))
    assert path == tmp_path / "logs" / "2026-11-21T09-30-05.log"
    assert path.read_text() == ("[09:30:05] [action] look\n[09:30:05] [server] A hut.\n[09:30:05] [server] A door.\n")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_line_is_on_disk_as_soon_as_it_is_written(tmp_path: Path) -> None:
    log = SessionLog(tmp_path, AT)
    log.write("action", "look", AT)
    assert "look" in log.path.read_text()
    log.close()


def test_the_last_lines_of_some_kinds_are_the_summary_shortened(tmp_path: Path) -> None:
    lines: list[tuple[Kind, str]] = [("server", f"line {number} {'x' * 200}") for number in range(50)]
    logged(tmp_path, *lines, ("system", "[Cycle] duration=1.0s"), ("operator", "dig"), ("patch", "Learned: x"))
    summary = read_prior_session(tmp_path, is_timed=True, keeps_summary=True).summary.splitlines()
    assert len(summary) == 40
    assert summary[-1] == "[server] " + f"line 49 {'x' * 200}"[:120]


def test_special_tokens_are_taken_out(tmp_path: Path) -> None:
    logged(tmp_path, ("server", "<|im_start|>Hello<tool_call|>"))
    assert read_prior_session(tmp_path, is_timed=False, keeps_summary=True).summary == "[server] Hello"


def test_a_plan_that_is_built_says_to_call_done(tmp_path: Path) -> None:
    logged(tmp_path, ("goal", "[Goal] build"), ("system", BUILT), ("server", "It rains."))
    assert read_prior_session(tmp_path, is_timed=False, keeps_summary=True) == PriorSession(CALL_DONE, "build")


@pytest.mark.parametrize(("is_timed", "goal"), [(True, ""), (False, "dig")])
def test_an_agent_begins_without_the_summary_and_a_timed_one_without_the_goal(
    tmp_path: Path, is_timed: bool, goal: str
) -> None:
    logged(tmp_path, ("goal", "[Goal] old"), at=AT.replace(hour=8))
    logged(tmp_path, ("goal", "[Goal] build"), ("goal", "[Goal] dig"), ("server", "A hut."))
    assert read_prior_session(tmp_path, is_timed=is_timed) == PriorSession("", goal)


def test_without_a_log_there_is_nothing(tmp_path: Path) -> None:
    assert read_prior_session(tmp_path, is_timed=False) == PriorSession()
