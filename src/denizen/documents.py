"""Attached documents: read once, when they are attached, and told as text to a model that takes no such files."""

import io
import logging
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from typing import Final

from denizen.config.extras import how_to_install
from denizen.errors import ConfigError
from denizen.messages import Document, Text, UserPart
from denizen.plural import counted

PDF: Final = "application/pdf"


def is_pdf(data: bytes) -> bool:
    """Whether this is a PDF document."""
    return data.startswith(b"%PDF-")


def read_pdf(data: bytes, name: str) -> Document:
    """A PDF document with its text, which can take seconds. Raises ConfigError where it can't be read."""
    if find_spec("pypdf") is None:
        raise ConfigError(f"{name} is a PDF document, and reading it needs pypdf: {how_to_install('documents')}")
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    logging.getLogger("pypdf").addHandler(logging.NullHandler())  # what it forgives in a file is nobody's concern
    try:
        pages = [page.extract_text().strip() for page in PdfReader(io.BytesIO(data)).pages]
    except (DependencyError, FileNotDecryptedError) as error:
        raise ConfigError(f"{name} is encrypted: attach a copy without a password.") from error
    except Exception as error:  # the boundary to pypdf, which raises whatever a damaged file leads to
        raise ConfigError(f"{name} is no PDF document that can be read: {error}") from error
    text = "\n\n".join(pages).strip()
    return Document(PDF, data, name, text.encode("utf-8", "replace").decode(), len(pages))


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
