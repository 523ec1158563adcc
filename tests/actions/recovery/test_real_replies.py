"""What real models wrote means what their families' own parsers say, without being told the family."""

import pytest
from tests.actions.recovery.rows import ALONE, NEVER, ROWS, Row, recovered, tools_of, wrong

from denizen.actions import recover_calls


def _id(row: Row) -> str:
    return row["id"]


@pytest.mark.parametrize("row", ROWS, ids=_id)
def test_a_reply_means_what_it_should(row: Row) -> None:
    problems = wrong(row, recovered(row))
    assert bool(problems) == (row["id"] in ALONE), problems


@pytest.mark.parametrize("row", [row for row in ROWS if row.get("prefix")], ids=_id)
def test_so_does_a_reply_that_a_server_gives_with_the_head_of_the_turn(row: Row) -> None:
    problems = wrong(row, recovered(row, prefixed=True))
    assert bool(problems) == (row["id"] in NEVER), problems


def test_reading_twice_gives_the_same_and_ids_differ_within_a_reply() -> None:
    for row in ROWS:
        first, second = recovered(row), recovered(row)
        assert first == second
        assert len({call.id for call in first.calls}) == len(first.calls)


def test_only_offered_tools_are_called() -> None:
    for row in ROWS:
        assert {call.name for call in recovered(row).calls} <= {tool["name"] for tool in tools_of(row)}
        assert recover_calls(row["raw"], []).calls == []
