"""The contents of Matrix events: what others wrote there, and those of texts and files that are sent."""

import mimetypes
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from denizen.worlds.chat.delivery.channels.matrix_account import MatrixClient, checked

MAX_FORMATTED_BYTES = 45_000
"""An event may have 65,536 bytes, and encryption turns three bytes into four."""


def value_at(value: Any, *path: str) -> Any:
    """The value at a path in somebody's JSON; None if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text_at(value: Any, *path: str) -> str:
    """The text that others wrote there; empty unless it is one."""
    found = value_at(value, *path)
    return found if isinstance(found, str) else ""


def file_url(content: Any) -> str:
    """The URL of a message's file; empty if it has none."""
    return text_at(content, "file", "url") or text_at(content, "url")


def file_name(content: Any) -> str:
    """The name of a message's file."""
    return text_at(content, "filename") or text_at(content, "body")


def text_of(content: Any) -> str:
    """What the sender of a message wrote: without a quoted message, or the caption of a file."""
    body = text_at(content, "body")
    if file_url(content):
        return "" if file_name(content) == body else body
    is_quoted = value_at(content, "m.relates_to", "m.in_reply_to") and body.startswith("> ")
    return body.partition("\n\n")[2] if is_quoted else body


def text_content(text: str, thread: str, edits: str) -> dict[str, Any]:
    """The content of a text event, or of an edit that replaces an earlier one."""
    from markdown_it import MarkdownIt

    content: dict[str, Any] = {"msgtype": "m.text", "body": text, "m.mentions": {}}
    markdown = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    html = markdown.render(text).strip()
    formatted = content | {"format": "org.matrix.custom.html", "formatted_body": html}
    if html != f"<p>{escape(text)}</p>" and len(msgspec.json.encode(formatted)) <= MAX_FORMATTED_BYTES:
        content = formatted
    if edits:
        relation = {"rel_type": "m.replace", "event_id": edits}
        return {"msgtype": "m.text", "body": f"* {text[:100]}", "m.new_content": content, "m.relates_to": relation}
    return content | thread_relation(thread)


def thread_relation(thread: str) -> dict[str, Any]:
    """The part of a content that puts it into a thread; nothing outside one."""
    if not thread:
        return {}
    fallback = {"is_falling_back": True, "m.in_reply_to": {"event_id": thread}}
    return {"m.relates_to": {"rel_type": "m.thread", "event_id": thread, **fallback}}


async def uploaded_file(client: MatrixClient, path: Path, *, is_encrypted: bool) -> dict[str, Any]:
    """Upload a file, and return the content of its event."""
    kind, size = mimetypes.guess_type(path.name)[0] or "application/octet-stream", path.stat().st_size
    with path.open("rb") as file:
        answer, secret = await client.upload(file, kind, path.name, encrypt=is_encrypted, filesize=size)
    url, family = checked(answer).content_uri, kind.partition("/")[0]
    return {
        "msgtype": f"m.{family}" if family in {"image", "audio", "video"} else "m.file",
        "body": path.name,
        "info": {"mimetype": kind, "size": size},
        "m.mentions": {},
        **({"file": {**secret, "url": url}} if secret else {"url": url}),
    }
