"""Turns a web page into Markdown: `python -I readable.py FILE`, its text goes to standard output.

A program of its own: there are pages of a few kilobytes that would make it take gigabytes, or crash it.
"""

import resource
import sys
from contextlib import suppress
from pathlib import Path

MAX_MEMORY_BYTES = 1_000_000_000  # bytes
MAX_CPU_S = 20  # seconds of a processor


def main(path: str) -> None:
    """Print the text of the page in the file, as UTF-8, with its title."""
    with suppress(ValueError, OSError):  # not every system has these limits
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S))
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    from html_to_markdown import ConversionOptions, InlineDataMedia, PreprocessingOptions, convert

    options = ConversionOptions(
        compact_tables=True,
        inline_data_media=InlineDataMedia.ALT_TEXT_ONLY,
        preprocessing=PreprocessingOptions(enabled=True, preset="standard", remove_navigation=True, remove_forms=True),
    )
    page = convert(Path(path).read_text("utf-8"), options)
    head, mark, body = (page.content or "").partition("\n---\n")
    text = body if mark and head.startswith("---\n") else page.content or ""
    title = page.metadata.document.title if page.metadata else None
    heading = f"# {title}\n\n" if title and title not in text[:1000] else ""
    sys.stdout.buffer.write((heading + text.strip()).encode("utf-8", "replace"))


if __name__ == "__main__":
    main(sys.argv[1])
