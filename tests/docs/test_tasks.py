"""What the page on tasks says of lists and trees is what the benchmark measures."""

import pytest
from benchmarks.tasks import table
from tests.docs.pages import DOCS


def cells(line: str) -> list[str | float]:
    """Those of a table's line, numbers as such."""
    texts = [cell.strip().replace(",", "") for cell in line.strip("|").split("|")]
    return [float(text) if text.replace(".", "").isdigit() else text for text in texts]


async def test_the_table_is_that_of_the_benchmark() -> None:
    page = (DOCS / "tasks.md").read_text("utf-8").partition("## List or tree?")[2]
    told = [cells(line) for line in page.splitlines() if line.startswith("|")]
    measured = [cells(line) for line in (await table()).markdown().splitlines() if line.startswith("|")]
    assert len(told) == len(measured) > 2
    for row, truth in zip(told, measured, strict=True):
        assert row == [pytest.approx(cell, rel=0.05) if isinstance(cell, float) else cell for cell in truth]
