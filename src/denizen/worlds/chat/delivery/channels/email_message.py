"""Parses a mail: its sender, whether the sender is verified, its text without quoted lines, and its attachments."""

import re
from collections.abc import Iterator
from datetime import datetime
from email.message import EmailMessage
from email.utils import getaddresses, parsedate_to_datetime
from typing import NamedTuple

from denizen.errors import ToolRefused
from denizen.tools.fetching.page import WebPage, read_page

_ADDRESS = re.compile(r"[^\s<>,;:]+@[^\s<>,;:]+")
_ID = re.compile(r"<[^<>\s]+>")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_COMMENT = re.compile(r"\((?:[^()\\]|\\.)*\)")
_DMARC = re.compile(r"dmarc ?= ?pass\b", re.IGNORECASE)
_DKIM = re.compile(r"dkim ?= ?pass .*?(?<= )header\.(?:d|i) ?= ?(\S+)", re.IGNORECASE)
_FORWARDED = re.compile(r"\s*(?:fwd?|wg|tr|rv|i)\s*:", re.IGNORECASE)
_HEADER_LINE = re.compile(r"[*_]{0,2}[^\W\d][^:\n]{0,20}:[*_]{0,2}\s*\S")
_MIN_HEADER_LINES = 3
"""Quoted text without `>` begins with at least this many header lines: from, sent, to."""
_AUTOMATIC = frozenset({"bulk", "list", "junk", "auto_reply"})


class Attachment(NamedTuple):
    """A file in a mail."""

    name: str
    data: bytes


def sender_of(mail: EmailMessage) -> str:
    """The address in the From header, in small letters; empty if it doesn't name exactly one.

    The receiving server may read `ann@a.example <eve@b.example>` as Eve's.
    """
    raw = _raw(mail, "From")
    found = [address.lower() for _, address in getaddresses(raw) if address]
    bare = _COMMENT.sub(" ", _QUOTED.sub('""', " ".join(raw))).lower()
    return found[0] if len(found) == 1 and found == _ADDRESS.findall(bare) else ""


def _raw(mail: EmailMessage, field: str) -> list[str]:
    """Headers as they were sent: the library decodes, and repairs, the others."""
    return [str(value) for name, value in mail.raw_items() if name.lower() == field.lower()]


def addresses_in(mail: EmailMessage, *fields: str) -> list[str]:
    """The addresses in these headers, in small letters."""
    headers = [str(each) for field in fields for each in mail.get_all(field, [])]
    return [address.lower() for _, address in getaddresses(headers) if address]


def ids_of(mail: EmailMessage, field: str) -> list[str]:
    """The message ids in a header, in order."""
    return _ID.findall(str(mail.get(field, "")))


def sent_at(mail: EmailMessage) -> datetime | None:
    """The time in the Date header; None if it is missing or has no time zone."""
    try:
        at = parsedate_to_datetime(str(mail.get("Date", "")))
    except (ValueError, OverflowError):
        return None
    return at if at.tzinfo else None


def is_automatic(mail: EmailMessage) -> bool:
    """Whether a program wrote it: a mailing list, a bounce, an out-of-office reply. Answering could loop (RFC 3834)."""
    if str(mail.get("Auto-Submitted", "no")).split(";")[0].strip().lower() != "no":
        return True
    if any(field in mail for field in ("List-Id", "List-Unsubscribe", "X-Autoreply", "X-Autorespond")):
        return True
    is_bounce = str(mail.get("Return-Path", "")).strip() == "<>" or mail.get_content_type() == "multipart/report"
    return is_bounce or str(mail.get("Precedence", "")).strip().lower() in _AUTOMATIC


def is_authenticated(mail: EmailMessage, authserv: str) -> bool:
    """Whether the receiving server `authserv` found the sender genuine: DMARC passed, or the sender's domain signed it.

    Only the topmost Authentication-Results header counts (RFC 8601), because senders can add others. They also choose
    its quoted text, comments and values, such as `smtp.mailfrom=dmarc=pass@…`: each result begins its part.
    """
    text, comments = _QUOTED.sub('""', "".join(_raw(mail, "Authentication-Results")[:1])), 1
    while comments:  # they nest
        text, comments = _COMMENT.subn(" ", text)
    server, *results = (" ".join(part.split()) for part in text.split(";"))
    if server.split(" ")[0].lower() != authserv.lower():
        return False
    domain = sender_of(mail).rpartition("@")[2]
    signed = [match[1].rpartition("@")[2].lower() for match in map(_DKIM.match, results) if match]
    return any(map(_DMARC.match, results)) or any(domain == each or domain.endswith(f".{each}") for each in signed)


async def text_of(mail: EmailMessage) -> str:
    """The text that the sender wrote, without quoted lines; HTML is converted to Markdown."""
    body = mail.get_body(("plain", "html"))
    text = ""
    if body:
        try:
            text = str(body.get_content())
        except LookupError:  # an unknown character set
            text = bytes(body.get_payload(decode=True)).decode(errors="replace")
        if body.get_content_type() == "text/html":
            try:
                text = await read_page(WebPage("The mail", "text/html", "utf-8", text.encode(), cut=False))
            except ToolRefused as error:
                text = f"[{error}]"
    is_reply = bool(ids_of(mail, "In-Reply-To")) and not _FORWARDED.match(str(mail.get("Subject", "")))
    return without_quoted_text(text) if is_reply else text.strip()


def without_quoted_text(text: str) -> str:
    """The lines of a reply that its sender wrote; the session already has the quoted ones.

    This removes lines that begin with `>`, the line before them if it ends with a colon, the signature, and everything
    after a repeated mail header.
    """
    lines = text.splitlines()
    for at in range(len(lines)):
        if lines[at] == "-- " or _begins_header(lines, at):
            lines = lines[:at]
            break
    kept = list[str]()
    for line in lines:
        if not line.lstrip().startswith(">"):
            kept.append(line)
            continue
        while kept and not kept[-1].strip():
            kept.pop()
        if kept and kept[-1].rstrip().endswith(":"):
            kept.pop()
            while kept and kept[-1].strip():  # an attribution may be wrapped over several lines of one paragraph
                kept.pop()
    return "\n".join(kept).strip()


def _begins_header(lines: list[str], at: int) -> bool:
    header = lines[at : at + _MIN_HEADER_LINES]
    is_header = len(header) == _MIN_HEADER_LINES and all(_HEADER_LINE.match(line.strip()) for line in header)
    return is_header and "@" in "".join(header) and (at == 0 or not lines[at - 1].strip(" -_*"))


def attachments_of(mail: EmailMessage) -> Iterator[Attachment]:
    """The files in a mail, including inline ones."""
    body = mail.get_body(("plain", "html"))
    for part in mail.walk():
        if part.is_multipart() or part is body or not (part.get_filename() or part.get_content_maintype() != "text"):
            continue
        payload = part.get_payload(decode=True)
        if isinstance(payload, bytes):
            yield Attachment(part.get_filename() or f"attachment.{part.get_content_subtype()}", payload)
