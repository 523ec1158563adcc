"""Line wrapping by terminal cells."""

from collections.abc import Iterator

from rich.cells import cell_len, chop_cells


def wrap_line(text: str, cells: int) -> Iterator[str]:
    """Wrap a line to that many cells, between words if possible."""
    while not (len(text) <= cells and text.isascii()) and cell_len(text) > cells:
        fits = text[:cells] if text.isascii() else chop_cells(text, cells)[0]
        space = len(fits) if text[len(fits)] == " " else fits.rfind(" ")
        end = space if fits[: max(space, 0)].strip() else len(fits)
        yield text[:end]
        text = text[end:].removeprefix(" ")
    yield text
