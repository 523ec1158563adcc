"""Record a command as it looks on a terminal, as SVG.

scripts/record.py OUT.svg COMMAND [ARG …]
"""

import os
import pty
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 100
TRANSIENT = re.compile(r"[^\n]*\r\x1b\[K")
"""What a later part of the same line replaced."""


def record(command: list[str]) -> str:
    """All that the command wrote to a terminal of its own."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(COLUMNS=str(WIDTH), LINES="40", TERM="xterm-256color")
        os.execvp(command[0], command)
    chunks = []
    while chunk := _read(terminal):
        chunks.append(chunk)
    os.waitpid(pid, 0)
    return b"".join(chunks).decode("utf-8", "replace").replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says so when the other end is closed
        return b""


def as_svg(output: str, prompt: str) -> str:
    """The recorded screen with the typed command above it."""
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115, PTH123
    console.print(Text.assemble(("$ ", "bold green"), prompt))
    console.print(Text.from_ansi(TRANSIENT.sub("", output)))
    svg = console.export_svg(title="denizen")
    return re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # no picture of ours loads fonts from elsewhere


if __name__ == "__main__":
    out, command = Path(sys.argv[1]), sys.argv[2:]
    shown = " ".join(f'"{word}"' if " " in word else word for word in command)
    out.write_text(as_svg(record(command), shown.replace(".venv/bin/", "")), "utf-8")
