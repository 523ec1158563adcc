"""Downloads as text: their character set and type, and the readable part of a web page."""

import codecs
import re
from contextlib import suppress
from pathlib import Path

import msgspec

from denizen.config.pattern import pattern
from denizen.errors import ToolRefused
from denizen.tools.programs.process import run_python

_PROGRAM = Path(__file__).with_name("readable.py")
_MAX_TEXT_BYTES = 10_000_000  # bytes of Markdown that are made of one page
_TIMEOUT_S = 30.0
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = pattern(
    r"text(?:/.*)?|.*\+(?:json|xml)"
    r"|application/(?:json|xml|javascript|ecmascript|yaml|x-yaml|toml|x-ndjson|x-sh|sql|graphql)"
)
_UNKNOWN_TYPES = frozenset({"", "application/octet-stream", "binary/octet-stream"})
_META = pattern(rb"<meta[^<>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_NO_CHARSETS = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "utf-7"})
"""Codecs of Python that no page is written in, or that only a trick is written in."""


class WebPage(msgspec.Struct, frozen=True):
    """An address's response: its bytes, and their type and charset by its headers (lower case; empty: not given)."""

    url: str
    media_type: str
    charset: str
    data: bytes
    cut: bool


def is_text(media_type: str) -> bool:
    """Whether content of that type can be read, or may turn out to be readable."""
    return media_type in _HTML | _UNKNOWN_TYPES or _TEXT.fullmatch(media_type) is not None


async def read_page(page: WebPage) -> str:
    """The page's text; of HTML, as Markdown. Raises ToolRefused for binary data, and for HTML that can't be read."""
    if (
        page.media_type in _UNKNOWN_TYPES
        and b"\0" in page.data[:1000]
        and not page.data.startswith(tuple(_BYTE_ORDER_MARKS))
    ):
        raise ToolRefused(f"{page.url} is binary data of an unknown type, {len(page.data):,} bytes")
    mark = next((charset for mark, charset in _BYTE_ORDER_MARKS.items() if page.data.startswith(mark)), "")
    meta = _META.search(page.data[:1024]) if page.media_type in _HTML | {""} else None
    text = page.data.decode("cp1252", errors="replace")
    for charset in (mark, page.charset, meta[1].decode() if meta else "", "utf-8"):
        with suppress(LookupError, ValueError):  # none that Python knows, or not the page's
            b"x".decode(charset, "ignore")  # refuses what isn't a character set
            codec = codecs.lookup(charset)
            if codec.incrementaldecoder and codec.name not in _NO_CHARSETS:
                text = codec.incrementaldecoder().decode(page.data, final=not page.cut)
                break
    looks_like_html = not page.media_type and text.lstrip()[:20].casefold().startswith(("<!doctype html", "<html"))
    if page.media_type not in _HTML and not looks_like_html:
        return text
    data = text.encode(errors="replace")
    status, markdown = await run_python(_PROGRAM, data, seconds=_TIMEOUT_S, most=_MAX_TEXT_BYTES)
    if status is None:
        raise ToolRefused(f"{page.url} can't be made readable in {_TIMEOUT_S:g} s")
    if status:
        raise ToolRefused(f"{page.url} can't be made readable: it is too deeply nested, or broken")
    return markdown
