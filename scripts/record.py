r"""Record commands as they look on a terminal, as SVG: in this repository, with a new home and no keys.

scripts/record.py out.svg 'denizen ask "What language is this project?"' \
    "denizen ask --continue \"Find the text 'os.fork' in src\""
"""

import fcntl
import os
import pty
import re
import shlex
import struct
import sys
import tempfile
import termios
from pathlib import Path

import pyte
from pyte.screens import Char
from rich.console import Console
from rich.style import Style
from rich.text import Text

ROOT = Path(__file__).parents[1]
WIDTH = 100
HEIGHT = 400
"""Rows: nothing scrolls away."""
PRIVATE = re.compile(r"/(?:home|root|tmp|Users)/\S+|" + re.escape(str(ROOT)))
"""What says on which machine it was recorded."""


def record(command: list[str], home: str, folder: Path = ROOT, **variables: str) -> Text:
    """What the command left on a terminal of its own, in a folder, with these variables beside the usual ones."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
        environ = {"HOME": home, "DENIZEN_HOME": home, "TERM": "xterm-256color"}
        environ |= {"PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}", "LANG": "C.UTF-8"}
        os.chdir(folder)
        os.execvpe(command[0], command, environ | variables)
    screen = pyte.Screen(WIDTH, HEIGHT)
    emulator = pyte.ByteStream(screen)
    while data := _read(terminal):
        emulator.feed(data)
    os.waitpid(pid, 0)
    rows = [[screen.buffer[row][column] for column in range(WIDTH)] for row in range(screen.cursor.y + 1)]
    return Text("\n").join(Text.assemble(*((cell.data, _style(cell)) for cell in row)) for row in rows)


def _style(cell: Char) -> Style:
    named = cell.fg.replace("brown", "yellow").replace("bright", "bright_")
    colour = f"#{cell.fg}" if re.fullmatch("[0-9a-f]{6}", cell.fg) else None if named == "default" else named
    return Style(color=colour, bold=cell.bold, italic=cell.italics, underline=cell.underscore)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says so when the other end is closed
        return b""


def as_svg(recorded: dict[str, Text]) -> str:
    """The screen after all commands, each typed above what it wrote."""
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115, PTH123
    for command, output in recorded.items():
        console.print(Text.assemble(("$ ", "bold green"), command))
        console.print(output)
    svg = console.export_svg(title="denizen", unique_id="denizen")
    return re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # no picture of ours loads fonts from elsewhere


def save(recorded: dict[str, Text], out: Path) -> None:
    """Write the picture, unless it would tell on which machine it was made."""
    for output in recorded.values():
        if found := PRIVATE.search(output.plain):
            sys.exit(f"not written: the recording shows {found[0]}")
    out.write_text(as_svg(recorded), "utf-8")


def main(out: Path, commands: list[str]) -> None:
    """Record them, one after the other."""
    with tempfile.TemporaryDirectory() as home:
        save({command: record(shlex.split(command), home) for command in commands}, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
