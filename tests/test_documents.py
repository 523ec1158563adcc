"""Documents that are attached: read once, and told as text where they can't be sent."""

import io
import sys

import pytest
from pypdf import PdfReader, PdfWriter
from tests.documents import BRIDGE, COMMAND, LINE, PAPER

from denizen.documents import as_taken, document_text, read_pdf
from denizen.errors import ConfigError
from denizen.estimate import IMAGE_TOKENS, estimate_message
from denizen.messages import Document, Text, UserMessage

WHOLE = BRIDGE.read_bytes()


def written(*, password: str = "") -> bytes:
    """The document as a program writes it, without text where it is encrypted for nobody."""
    writer, file = PdfWriter(clone_from=PdfReader(io.BytesIO(WHOLE))), io.BytesIO()
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(file)
    return file.getvalue()


def blank() -> bytes:
    writer, file = PdfWriter(), io.BytesIO()
    writer.add_blank_page(72, 72)
    writer.write(file)
    return file.getvalue()


def test_text_and_pages_are_read() -> None:
    assert LINE in PAPER.text
    assert COMMAND in PAPER.text
    assert (PAPER.pages, PAPER.data, PAPER.name) == (2, WHOLE, "bridge.pdf")
    assert read_pdf(written(), "again.pdf").text == PAPER.text


@pytest.mark.parametrize(
    ("data", "why"),
    [(WHOLE[:400], "a.pdf is no PDF document that can be read"), (written(password="secret"), "a.pdf is encrypted")],
    ids=["cut", "encrypted"],
)
def test_what_cannot_be_read_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        read_pdf(data, "a.pdf")


def test_without_the_library_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(ConfigError, match=r"a\.pdf is a PDF document.* pip install .*pypdf"):
        read_pdf(WHOLE, "a.pdf")


def test_text_says_what_it_is_the_text_of() -> None:
    told = document_text(PAPER)
    assert told.startswith('\n\n<file path="bridge.pdf">\n[the text of bridge.pdf, 2 pages; its pictures and layout')
    assert told.endswith(f"{COMMAND} before the inspection.\n</file>")
    assert "no text in it can be read: say so" in document_text(read_pdf(blank(), "scan.pdf"))
    assert document_text(Document("text/csv", b"a,b\n", "t.csv")) == '\n\n<file path="t.csv">\na,b\n\n</file>'


def test_only_documents_that_a_provider_does_not_take_become_text() -> None:
    notes, words = Document("text/plain", b"mine", "n.txt"), Text("Read these")
    assert as_taken([words, PAPER, notes], ["application/pdf"]) == [words, PAPER, Text(document_text(notes))]


def test_pages_count_as_pictures_and_words() -> None:
    words = estimate_message(UserMessage([Text(PAPER.text)]))
    assert estimate_message(UserMessage([PAPER])) == words + 2 * IMAGE_TOKENS
    notes = Document("text/plain", PAPER.text.encode(), "n.txt")
    assert estimate_message(UserMessage([notes])) == words
