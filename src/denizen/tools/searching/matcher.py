"""Searches files for `grep` where `rg` isn't installed, or doesn't know the pattern: a program of its own.

`python matcher.py PATTERN FLAGS MOST FILE…` prints `FILE NUL LINE:COLUMN` for the first MOST lines of each file that
match (columns in bytes, from 1); with the flag `c`, `FILE NUL COUNT`. The flag `i` ignores case.

A process, because it can be ended when a pattern takes for ever: a thread would hold the interpreter while it matches.
It needs nothing of Denizen, so that it starts at once.
"""

import codecs
import io
import os
import re
import sys
from collections.abc import Iterator
from itertools import islice

_HEAD_BYTES = 8192  # bytes in which binary data shows itself
_MAX_LINE_CHARS = 1 << 22  # characters of a line that are looked at


def main(pattern: str, flags: str, most: str, *paths: str) -> None:
    """Search the files in their order."""
    matcher = re.compile(pattern, re.IGNORECASE if "i" in flags else 0)
    for path in paths:
        name = os.fsencode(path)
        try:
            hits = _hits(matcher, path)
            if "c" in flags:
                count = sum(1 for _ in hits)
                found = [b"%d" % count] if count else []
            else:
                found = [b"%d:%d" % hit for hit in islice(hits, int(most))]
        except OSError:
            continue  # gone, or something else by now: `rg` skips it, too
        sys.stdout.buffer.write(b"".join(b"%s\0%s\n" % (name, hit) for hit in found))


def _hits(matcher: re.Pattern[str], path: str) -> Iterator[tuple[int, int]]:
    """The line and the column of the first match of each line that has one."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        head = file.peek(_HEAD_BYTES)[:_HEAD_BYTES]
        wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        if b"\0" in head and not wide:
            return  # binary data, which isn't shown anyway
        text = io.TextIOWrapper(file, "utf-16" if wide else "utf-8-sig", errors="replace", newline="\n")
        lines = text if os.fstat(file.fileno()).st_size < _MAX_LINE_CHARS else _lines(text)
        for number, line in enumerate(lines, 1):
            found = matcher.search(line.removesuffix("\n").removesuffix("\r"))
            if found:
                yield number, len(line[: found.start()].encode()) + 1


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    """The lines, of a very long one only the beginning."""
    while line := text.readline(_MAX_LINE_CHARS):
        yield line
        while line and not line.endswith("\n"):
            line = text.readline(_MAX_LINE_CHARS)


if __name__ == "__main__":
    main(*sys.argv[1:])
