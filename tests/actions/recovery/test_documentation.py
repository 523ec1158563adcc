"""What the documentation says of the share that passes is so."""

from pathlib import Path

from tests.actions.recovery.rows import ALONE, NEVER, ROWS, shares

PAGE = Path(__file__).parents[3] / "docs" / "recovery.md"


def test_the_documented_shares_are_those_of_today() -> None:
    assert shares() in PAGE.read_text("utf-8")


def test_every_exception_is_a_reply_and_has_a_reason() -> None:
    assert ALONE.keys() <= {row["id"] for row in ROWS}
    assert all(ALONE.values())
    assert len(NEVER) < len(ALONE) < len(ROWS) // 10
