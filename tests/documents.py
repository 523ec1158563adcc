"""Documents to attach and to read: two pages of one line each, and more of them."""

import io
from pathlib import Path
from typing import Final

from pypdf import PdfReader, PdfWriter
from pypdf.annotations import Link

from denizen.text.documents import read_pdf

BRIDGE: Final = Path(__file__).parent / "data" / "documents" / "bridge.pdf"
LINE: Final = "The bridge over the Elster is open."
COMMAND: Final = "$(rm -rf build)"
"""What its second page says to run."""
PAPER: Final = read_pdf(BRIDGE.read_bytes(), "bridge.pdf")


def written(*, pages: int = 2, password: str = "", owner: str | None = None, links: bool = False) -> bytes:
    """The two pages, again and again, as a program writes them; with a password they are encrypted.

    With the password of its `owner` alone anybody may read them; with `links`, each page leads to every other.
    """
    writer, there = PdfWriter(), PdfReader(BRIDGE).pages
    for number in range(pages):
        writer.add_page(there[number % 2])
    for number in range(pages if links else 0):
        for other in range(pages):
            writer.add_annotation(number, Link(rect=(0, 0, 9, 9), target_page_index=other))
    if password or owner:
        writer.encrypt(password, owner, algorithm="RC4-128")
    return _bytes(writer)


def scanned(*, pages: int = 1) -> bytes:
    """Pages without any text."""
    writer = PdfWriter()
    for _ in range(pages):
        writer.add_blank_page(72, 72)
    return _bytes(writer)


def _bytes(writer: PdfWriter) -> bytes:
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()
