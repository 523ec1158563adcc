"""Files that a model sees rather than reads: pictures, and pages of PDF documents."""

import io
import os
import threading
from collections.abc import Callable

from denizen.errors import ToolRefused
from denizen.messages import Image, Text, ToolResult
from denizen.text.documents import is_pdf, picture_type, read_pages
from denizen.tools.files.text import size

MAX_IMAGE_BYTES = 3_750_000  # bytes; five million when written in base64, which is what providers take
MAX_PDF_BYTES = 100_000_000  # bytes


def seen(
    file: io.BufferedReader,
    path: str,
    pages: tuple[int, int | None],
    go_on: Callable[[int], str],
    *,
    most: int,
    stop: threading.Event,
) -> ToolResult | None:
    """A picture, or these pages of a PDF document, with at most so many characters of text; None for other files.

    `go_on` gives the command that shows the pages from a number on. Raises ToolRefused, ConfigError.
    """
    head, length = file.peek(64)[:64], os.fstat(file.fileno()).st_size
    if media_type := picture_type(head):
        if length > MAX_IMAGE_BYTES:
            limit = f"at most {size(MAX_IMAGE_BYTES)} can be seen: scale it down"
            raise ToolRefused(f"{path} is an image of {size(length)}; {limit}")
        about, image = f"{path}: {media_type}, {size(length)}", Image(media_type, file.read(MAX_IMAGE_BYTES))
        details = {"path": path, "bytes": length, "media_type": media_type}
        return ToolResult("", "", [Text(about), image], details=details)
    if not is_pdf(head):
        return None
    if length > MAX_PDF_BYTES:
        raise ToolRefused(f"{path} is a PDF document of {size(length)}; at most {size(MAX_PDF_BYTES)} can be read")
    first, last = pages
    shown, end, count = read_pages(file.read(MAX_PDF_BYTES), path, pages, most=most, stop=stop)
    which = f"page {first}" if end == first else f"pages {first} to {end}"
    about = f"{path}: PDF document, {size(length)}, {which} of {count}"
    if end < min(last or count, count):
        about += f"; to go on: {go_on(end + 1)}"
    details = {"path": path, "bytes": length, "media_type": shown.media_type, "first": first, "last": end}
    return ToolResult("", "", [Text(about), shown], details=details)
