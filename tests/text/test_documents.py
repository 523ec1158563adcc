"""Documents that are attached: read once, and told as text where they can't be sent."""

import io
import sys
import threading

import pytest
from pypdf import PdfReader
from tests.documents import BRIDGE, COMMAND, LINE, PAPER, scanned, written

from denizen.errors import ConfigError
from denizen.messages import Document, Text, UserMessage
from denizen.text.documents import LARGEST, MOST_PAGES, MOST_SHOWN, as_taken, document_text, read_pages, read_pdf
from denizen.text.estimate import IMAGE_TOKENS, estimate_message

WHOLE = BRIDGE.read_bytes()


def test_text_and_pages_are_read() -> None:
    assert LINE in PAPER.text
    assert COMMAND in PAPER.text
    assert (PAPER.pages, PAPER.data, PAPER.name) == (2, WHOLE, "bridge.pdf")
    assert read_pdf(written(), "again.pdf").text == PAPER.text


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (WHOLE[:400], "a.pdf isn't a PDF document that can be read"),
        (written(password="secret"), "a.pdf is encrypted"),
        (scanned(pages=MOST_PAGES + 1), f"a.pdf has {MOST_PAGES + 1} pages; at most {MOST_PAGES} .*let the agent read"),
        (WHOLE.ljust(LARGEST + 1), "a.pdf is longer than 10 MB. .*let the agent read pages of it"),
    ],
    ids=["cut", "encrypted", "too many pages", "too long"],
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
    assert "no text in it can be read: say so" in document_text(read_pdf(scanned(), "scan.pdf"))
    assert document_text(Document("text/csv", b"a,b\n", "t.csv")) == '\n\n<file path="t.csv">\na,b\n\n</file>'


def test_only_documents_that_a_provider_does_not_take_become_text() -> None:
    notes, words = Document("text/plain", b"mine", "n.txt"), Text("Read these")
    assert as_taken([words, PAPER, notes], ["application/pdf"]) == [words, PAPER, Text(document_text(notes))]


def test_pages_count_as_pictures_and_words() -> None:
    words = estimate_message(UserMessage([Text(PAPER.text)]))
    assert estimate_message(UserMessage([PAPER])) == words + 2 * IMAGE_TOKENS
    notes = Document("text/plain", PAPER.text.encode(), "n.txt")
    assert estimate_message(UserMessage([notes])) == words


def pages(data: bytes, first: int, last: int | None = None, most: int = 100_000) -> tuple[Document, int, int]:
    return read_pages(data, "book.pdf", (first, last), most=most, stop=threading.Event())


def test_a_part_of_the_pages_is_a_document_of_its_own() -> None:
    book = written(pages=300)
    part, end, count = pages(book, 201, 204)
    assert (part.pages, end, count) == (4, 204, 300)
    assert part.text.startswith(f"[page 201]\n{LINE}\n\n[page 202]\n")
    again = PdfReader(io.BytesIO(part.data)).pages
    assert [page.extract_text().strip() for page in again][::2] == [LINE, LINE]
    assert len(again) == 4
    assert len(part.data) < len(book) / 10


def test_pages_with_links_leave_the_pages_that_these_lead_to_behind() -> None:
    book = written(pages=40, links=True)
    assert len(pages(book, 3, 4)[0].data) < len(book) / 5


def test_what_only_its_owner_may_change_is_sent_without_encryption() -> None:
    protected = written(owner="secret")
    for document in (read_pdf(protected, "a.pdf"), pages(protected, 1)[0]):
        assert document.text == PAPER.text
        again = PdfReader(io.BytesIO(document.data))
        assert not again.is_encrypted
        assert LINE in again.pages[0].extract_text()


def test_what_is_shown_at_once_is_limited_in_pages_and_text() -> None:
    book = written(pages=300)
    assert pages(book, 101)[1:] == (100 + MOST_SHOWN, 300)
    assert pages(book, 101, most=len(LINE) * 4)[1] == 102
    assert pages(book, 300, most=1)[1:] == (300, 300)  # at least one
    with pytest.raises(ConfigError, match=r"book.pdf has 300 pages; there is none from 301 to the end"):
        pages(book, 301)


def test_all_pages_are_the_file_itself() -> None:
    assert pages(WHOLE, 1) == (read_pdf(WHOLE, "book.pdf"), 2, 2)


def test_pages_that_are_small_are_all_shown_whatever_else_the_file_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("denizen.text.documents.LARGEST", 5_000)
    shown, end, count = pages(WHOLE.ljust(6_000), 1)
    assert (shown.pages, end, count) == (2, 2, 2)
    assert len(shown.data) < 5_000


def test_pages_that_are_too_large_become_fewer_and_one_alone_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    book = written(pages=40)
    monkeypatch.setattr("denizen.text.documents.LARGEST", len(pages(book, 1, 6)[0].data))
    assert pages(book, 1)[1] < 10
    monkeypatch.setattr("denizen.text.documents.LARGEST", 100)
    alone, end, _ = pages(book, 7)
    assert (alone.media_type, end) == ("text/plain", 7)
    assert LINE in document_text(alone)
