"""Attached documents: read once, when they are attached, and told as text to a model that takes no such files."""

import io
import logging
import re
import threading
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from denizen.config.extras import how_to_install
from denizen.config.pattern import pattern
from denizen.errors import ConfigError
from denizen.messages import Document, Image, Text, UserPart
from denizen.text.plural import counted

if TYPE_CHECKING:
    from pypdf import PdfReader

PDF: Final = "application/pdf"

MOST_PAGES: Final = 100
"""Pages of a document that goes to a model whole: some providers take no more."""
MOST_SHOWN: Final = 20
"""Pages that a tool shows at once."""
LARGEST: Final = 10_000_000
"""Bytes of a document, or of pages of one, that go to a model."""
_IN_PARTS: Final = "Name the file, and let the agent read pages of it; or attach a part."


_PICTURES: Final = pattern(
    rb"(?P<png>\x89PNG\r\n\x1a\n)|(?P<jpeg>\xff\xd8\xff)|(?P<gif>GIF8[79]a)|(?P<webp>RIFF.{4}WEBP)", re.DOTALL
)


def picture_type(data: bytes) -> str:
    """The media type of a picture that models can see, by its first bytes; empty for anything else."""
    found = _PICTURES.match(data)
    return f"image/{found.lastgroup}" if found else ""


def is_pdf(data: bytes) -> bool:
    """Whether this is a PDF document."""
    return data.startswith(b"%PDF-")


def read_pdf(data: bytes, name: str) -> Document:
    """A PDF document with its text, which can take seconds. Raises ConfigError if it can't be read."""
    if len(data) > LARGEST:
        raise ConfigError(f"{name} is longer than {LARGEST // 1_000_000} MB. {_IN_PARTS}")
    with _opened(data, name) as reader:
        count = len(reader.pages)
        if count > MOST_PAGES:
            raise ConfigError(f"{name} has {count} pages; at most {MOST_PAGES} go to a model at once. {_IN_PARTS}")
        readable = _extract(reader, 1, count) if reader.is_encrypted else data
        return _document(readable, name, [*_texts(reader, range(count))])


def attached_picture(data: bytes, name: str) -> Image:
    """A picture that somebody attached. Raises ConfigError for what models can't see."""
    if media_type := picture_type(data):
        return Image(media_type, data, outside=name.startswith("/"))
    raise ConfigError(f"{name} isn't a picture that models can see: png, jpeg, gif or webp.")


def attached_document(media_type: str, data: bytes, name: str) -> Document:
    """A file that somebody attached: text, or a PDF document, which is read. Raises ConfigError for any other."""
    if is_pdf(data):
        return read_pdf(data, name)
    if not media_type.startswith("text/"):
        raise ConfigError(f"{name} is neither a PDF document nor text.")
    return Document(media_type, data, name)


def read_pages(
    data: bytes, name: str, pages: tuple[int, int | None], *, most: int, stop: threading.Event
) -> tuple[Document, int, int]:
    """The pages from one to another (the first is 1) as a document, with the number of its last page and of all.

    It ends earlier after `MOST_SHOWN` pages, and where its text has `most` characters. Raises ConfigError.
    """
    first, last = pages
    with _opened(data, name) as reader:
        count = len(reader.pages)
        end = min(last or count, count, first + MOST_SHOWN - 1)
        if end < first:
            raise ConfigError(f"{name} has {counted(count, 'page')}; there is none from {first} to {last or 'the end'}")
        texts: list[str] = []
        for text in _texts(reader, range(first - 1, end)):
            if texts and (stop.is_set() or sum(map(len, texts)) + len(text) > most):
                break
            texts.append(text)
        end = first + len(texts) - 1
        as_it_is = len(texts) == count and len(data) <= LARGEST and not reader.is_encrypted
        while len(shown := data if as_it_is else _extract(reader, first, end)) > LARGEST:
            if end == first:  # it shares what it shows with other pages, or is a huge picture
                note = f"[the text alone: with its pictures the page has more than {LARGEST // 1_000_000} MB]"
                return Document("text/plain", f"{note}\n{texts[0]}".encode(), name), end, count
            end = (first + end) // 2
            texts = texts[: end - first + 1]
        return _document(shown, name, texts), end, count


def _document(data: bytes, name: str, texts: Sequence[str]) -> Document:
    return Document(PDF, data, name, "\n\n".join(filter(None, texts)), len(texts))


@contextmanager
def _opened(data: bytes, name: str) -> Generator["PdfReader"]:
    """A PDF document, to be read inside the block. Raises ConfigError for what can't be read there."""
    if find_spec("pypdf") is None:
        raise ConfigError(f"{name} is a PDF document, and reading it needs pypdf: {how_to_install('documents')}")
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    logging.getLogger("pypdf").addHandler(logging.NullHandler())  # what it forgives in a file is nobody's concern
    try:
        yield PdfReader(io.BytesIO(data))
    except ConfigError:
        raise
    except (DependencyError, FileNotDecryptedError) as error:
        raise ConfigError(f"{name} is encrypted. A copy without a password can be read.") from error
    except Exception as error:  # the boundary to pypdf, which raises whatever a damaged file leads to
        raise ConfigError(f"{name} isn't a PDF document that can be read: {error}") from error


def _texts(reader: "PdfReader", pages: Iterable[int]) -> Iterator[str]:
    """The text of each of the pages, by their numbers from 0 on, under a mark; empty if a page has none."""
    for number in pages:
        text = reader.pages[number].extract_text().strip().encode("utf-8", "replace").decode()
        yield f"[page {number + 1}]\n{text}" if text else ""


def _extract(reader: "PdfReader", first: int, last: int) -> bytes:
    """A document of these pages alone, not encrypted."""
    from pypdf import PdfWriter

    writer, file = PdfWriter(), io.BytesIO()
    for number in range(first - 1, last):
        page = reader.pages[number]
        writer.add_page(page, excluded_keys=("/Annots", "/B"))  # links to other pages would bring these along
    writer.write(file)
    return file.getvalue()


def text_in(document: Document) -> str:
    """Its words; of a PDF those that were read when it was attached."""
    if document.media_type.startswith("text/"):
        return document.data.decode("utf-8-sig", "replace")
    return document.text


def document_text(document: Document) -> str:
    """What a model is told of a document that it can't take as a file: its text, and that this is all."""
    name, lines = document.name, [text_in(document)]
    if not document.media_type.startswith("text/"):
        pages = f", {counted(document.pages, 'page')}" if document.pages else ""
        note = "its pictures and layout can't be seen" if document.text else "no text in it can be read: say so"
        lines.insert(0, f"[the text of {name}{pages}; {note}]")
    return "\n".join([f'\n\n<file path="{name}">', *lines, "</file>"])


def as_taken(parts: Sequence[UserPart], media_types: Collection[str]) -> list[UserPart]:
    """The parts as a provider takes them: a document that isn't of one of these media types becomes its text."""
    return [
        Text(document_text(part)) if isinstance(part, Document) and part.media_type not in media_types else part
        for part in parts
    ]
