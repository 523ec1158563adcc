r"""Record commands as they look on a terminal, as SVG: in this repository, with a new home and no keys.

scripts/record.py docs/images/ask.svg 'denizen ask "What language is this project?"' \
    "denizen ask --continue \"Find the text 'os.fork' in src\""
"""

import os
import pty
import re
import shlex
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
WIDTH = 100
TRANSIENT = re.compile(r"[^\n]*\r\x1b\[K")
"""What a later part of the same line replaced."""
PRIVATE = re.compile(r"/(?:home|root|tmp|Users)/\S+|" + re.escape(str(ROOT)))
"""What says on which machine it was recorded."""


def record(command: list[str], home: str, folder: Path = ROOT, **variables: str) -> str:
    """All that the command wrote to a terminal of its own, in a folder, with these variables beside the usual ones."""
    pid, terminal = pty.fork()
    if pid == 0:
        environ = {"HOME": home, "DENIZEN_HOME": home, "COLUMNS": str(WIDTH), "LINES": "40", "TERM": "xterm-256color"}
        environ |= {"PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}", "LANG": "C.UTF-8"}
        os.chdir(folder)
        os.execvpe(command[0], command, environ | variables)
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


def as_svg(recorded: dict[str, str]) -> str:
    """The screen after all commands, each typed above what it wrote."""
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115, PTH123
    for command, output in recorded.items():
        console.print(Text.assemble(("$ ", "bold green"), command))
        console.print(Text.from_ansi(TRANSIENT.sub("", output)))
    svg = console.export_svg(title="denizen", unique_id="denizen")
    return re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # no picture of ours loads fonts from elsewhere


def save(recorded: dict[str, str], out: Path) -> None:
    """Write the picture, unless it would tell on which machine it was made."""
    for output in recorded.values():
        if found := PRIVATE.search(output):
            sys.exit(f"not written: the recording shows {found[0]}")
    out.write_text(as_svg(recorded), "utf-8")


def main(out: Path, commands: list[str]) -> None:
    """Record them, one after the other."""
    with tempfile.TemporaryDirectory() as home:
        save({command: record(shlex.split(command), home) for command in commands}, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
