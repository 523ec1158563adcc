"""Lines that are broken to fit a screen."""

from collections.abc import Iterator

from rich.cells import cell_len, chop_cells


def broken(text: str, cells: int) -> Iterator[str]:
    """The rows that show a line in that many cells, broken between words if there are some."""
    while not (len(text) <= cells and text.isascii()) and cell_len(text) > cells:
        fits = text[:cells] if text.isascii() else chop_cells(text, cells)[0]
        space = len(fits) if text[len(fits)] == " " else fits.rfind(" ")
        end = space if fits[: max(space, 0)].strip() else len(fits)
        yield text[:end]
        text = text[end:].removeprefix(" ")
    yield text
