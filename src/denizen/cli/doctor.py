"""`denizen doctor`: what works here, and what to do about the rest."""

import os
import platform
import shutil
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

from denizen.cli.doctor_models import model_findings
from denizen.cli.finding import Finding
from denizen.cli.home import home
from denizen.cli.output import write
from denizen.cli.text import printable
from denizen.config import Config
from denizen.config.home import located
from denizen.config.load import Loaded, load
from denizen.errors import ConfigError
from denizen.tools.sandbox import choose_sandbox

_LITTLE_SPACE = 500_000_000
_NO_SPACE = 20_000_000
_INDENT = 16
_USABLE = 'Denizen can be used: denizen ask "List the files"'
_UNUSABLE = "Denizen can't be used before what is marked ✗ is fixed."
_UNLIMITED = 10_000


_SIGNS = {"fine": ("✓", "green"), "improvable": ("!", "yellow"), "broken": ("✗", "red")}


@click.command()
def doctor() -> int:
    """Look at what Denizen stands on here: what was found, and what to do about it.

    The exit status is 0 when Denizen can be used, 1 when it can't.
    """
    broken = False
    for finding in _findings():
        sign, colour = _SIGNS[finding.state]
        write(click.style(f"{sign} {finding.subject:13} ", fg=colour) + _folded(finding.found))
        if finding.advice:
            write(f"{'':{_INDENT}}{_folded(f'→ {finding.advice}')}")
        broken = broken or finding.state == "broken"
    write(f"\n{_UNUSABLE if broken else _USABLE}\n")
    return int(broken)


def _folded(text: str) -> str:
    """The text under itself, as wide as the terminal."""
    width = shutil.get_terminal_size().columns - _INDENT if sys.stdout.isatty() else _UNLIMITED
    return f"\n{'':{_INDENT}}".join(textwrap.wrap(printable(text), max(width, _INDENT))) + "\n"


def _findings() -> Iterator[Finding]:
    yield Finding("fine", "python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield from _home(home())
    try:
        loaded = load()
    except ConfigError as error:
        yield Finding("broken", "configuration", str(error), "Fix the file; `denizen config check` reads it again.")
        loaded = Loaded(located(Config(), environ=os.environ, cwd=Path.cwd()), os.environ, {}, (), ())
    else:
        yield from _configuration(loaded)
    yield from model_findings(loaded)
    yield _sandbox(loaded)
    yield _program("git", "Install git: without it there is no history to look at.")
    yield _program("rg", "Install ripgrep: without it, searching a large folder is slower.")


def _home(folder: Path) -> Iterator[Finding]:
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not there.is_dir():
        yield Finding(
            "broken", "home", f"{folder} can't be made: {there} is a file.", "Set DENIZEN_HOME to another place."
        )
        return
    if not os.access(there, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("broken", "home", f"{there} can't be written.", "Make it yours, or set DENIZEN_HOME.")
    elif there != folder:
        yield Finding("fine", "home", f"{folder}, which is made when something is to be kept")
    elif folder.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield Finding("improvable", "home", f"{folder} is open to other users.", f"Close it: chmod 700 {folder}")
    else:
        yield Finding("fine", "home", f"{folder}, for you alone")
    free = shutil.disk_usage(there).free
    state = "fine" if free > _LITTLE_SPACE else "improvable" if free > _NO_SPACE else "broken"
    yield Finding(state, "disk", f"{free / 1e9:.1f} GB free", "" if state == "fine" else "Make room: sessions grow.")


def _configuration(loaded: Loaded) -> Iterator[Finding]:
    read = ", ".join(map(str, loaded.sources))
    yield Finding("fine", "configuration", read or "the defaults (`denizen config init` makes a file to change them)")
    for text in loaded.notices:
        yield Finding("improvable", "configuration", text)
    yield Finding("fine", "workspace", f"{loaded.config.workspace}, where the agent works when it is started here")


def _sandbox(loaded: Loaded) -> Finding:
    sandbox = choose_sandbox(loaded.config.sandbox, environ=loaded.environ, home=home())
    found = f"{sandbox.name}: {sandbox.promises}"
    return Finding("improvable" if sandbox.advice else "fine", "sandbox", found, sandbox.advice)


def _program(name: str, advice: str) -> Finding:
    try:
        ran = subprocess.run([name, "--version"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return Finding("improvable", name, "not found", advice)
    return Finding("fine", name, ran.stdout.partition("\n")[0])
