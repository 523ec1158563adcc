"""How fast the bytes of a MUD are read, next to other telnet implementations in Python."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.contenders import Entry, scratch
from benchmarks.environments import HERE, Absent, python_of, version_of
from benchmarks.hall import Plan
from benchmarks.report import Goal, Samples, Table

NOTE = """\
Megabytes in a second of CPU time, in chunks of {chunk:,} bytes; median (least–most) of {rounds} rounds. *Talk* is what
DjangoMOO sends: lines between markers, coloured prompts with a mark, a GMCP message every few lines. *Text* is plain.
*Found in talk* are bytes of text, GMCP messages and prompt marks; all should be as in the first row. Denizen's two
rows: its telnet parser with GMCP decoded, and the same with lines: without markers, colours and wrapping."""
COLUMNS = ("implementation", "version", "talk", "text", "× telnetlib3, talk", "found in talk")
CHUNK = 4096
TALK = (
    b">>START<<\r\n>>OWN<<\r\nThe Library\r\nTall shelves, dust and silence; a lamp burns low on the oak desk by the"
    b"\r\nwindow.\r\n\r\nWizard is here.\r\n>>OWN-END<<\r\n>>END<<\r\n\x1b[38;2;0;170;0m>>> \x1b[0m\xff\xf9"
    b'\xff\xfa\xc9Comm.Channel.Text {"channel":"page","talker":"Mason","text":"Token: Mason done."}\xff\xf0'
    b'>>START<<\r\nMason pages, "Token: Mason done."\r\n>>END<<\r\n'
)
TEXT = b"A quiet back room where the Tradesmen gather between assignments.\r\n"
READERS = {"denizen": "", "denizen_lines": "", "telnetlib3": "telnetlib3", "twisted": "twisted", "telnetlib": ""}


def table(plan: Plan, peers: Sequence[Entry]) -> Table:
    result = Table("Telnet", NOTE.format(chunk=CHUNK, rounds=plan.repeats), COLUMNS)
    with scratch() as folder:
        files = {"talk": folder / "talk", "text": folder / "text"}
        files["talk"].write_bytes(TALK * 2000)
        files["text"].write_bytes(TEXT * 12_000)
        measured = {name: _measured(name, files, plan) for name in READERS}
    base = measured["telnetlib3"]
    for name, figures in measured.items():
        if isinstance(figures, str):
            result.add(name, figures)
            continue
        ratio = f"{figures['talk'].median / base['talk'].median:.2f} ×" if not isinstance(base, str) else ""
        result.add(
            name.replace("_", " with "), figures["version"], figures["talk"], figures["text"], ratio, figures["found"]
        )
    ours = measured["denizen"]
    if not isinstance(ours, str) and not isinstance(base, str):
        result.goals.append(
            Goal("reading talk, over telnetlib3 in time", 1.0, base["talk"].median / ours["talk"].median)
        )
    return result


def _measured(name: str, files: Mapping[str, Path], plan: Plan) -> dict[str, Any] | str:
    """The rates of one implementation, or why there are none."""
    package = READERS[name]
    try:
        python = python_of(package) if package else Path(sys.executable)
        version = version_of(python, package or "denizen") if name != "telnetlib" else "{}.{}".format(*sys.version_info)
    except Absent as error:
        return f"absent: {error}"
    figures: dict[str, Any] = {"version": version}
    for kind, file in files.items():
        command = [python, "-m", "benchmarks.peers.telnet", name, file, str(plan.repeats), str(CHUNK)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE.parent)
        if done.returncode:
            return "absent: " + (done.stderr.strip().splitlines() or ["failed"])[-1]
        said = json.loads(done.stdout)
        figures[kind] = Samples([file.stat().st_size / 1e6 / seconds for seconds in said["seconds"]])
        if kind == "talk":
            figures["found"] = ", ".join(f"{count:,}" for count in said["found"].values())
    return figures
