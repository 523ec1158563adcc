"""Text that is safe to print on a terminal, from any author."""

import re

_SEQUENCE = re.compile(
    r"""
      (?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]                          # CSI: colours, cursor
    | (?:\x1b[\]P^_X]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)  # OSC, DCS, …: titles, clipboard
    | \x1b[ -/]*[0-~]                                           # two characters and a little more
    """,
    re.VERBOSE,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text without escape sequences and control characters; tabs and new lines stay.

    Of a file's name, `?` replaces each byte that isn't UTF-8.
    """
    return _CONTROL.sub("", _SEQUENCE.sub("", text)).encode(errors="replace").decode()
