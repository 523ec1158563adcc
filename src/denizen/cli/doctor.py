"""`denizen doctor`: what works here, and what to do about the rest."""

import os
import platform
import shutil
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import click

from denizen.cli.home import home
from denizen.cli.output import write
from denizen.cli.text import printable
from denizen.clock import SystemClock
from denizen.config import Config
from denizen.config.home import ensure_home
from denizen.config.load import Loaded, load
from denizen.errors import ConfigError
from denizen.models import open_model
from denizen.models.local import served_models
from denizen.models.providers import PROVIDERS
from denizen.models.reach import reach
from denizen.tools.sandbox import choose_sandbox

_LITTLE_SPACE = 500_000_000
_NO_SPACE = 20_000_000
_INDENT = 16
_UNLIMITED = 10_000


class Finding(NamedTuple):
    """What was looked at, how it is, what was found, and what to do about it."""

    state: Literal["fine", "improvable", "broken"]
    subject: str
    found: str
    advice: str = ""


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
        yield Finding("broken", "configuration", str(error), "Mend the file; `denizen config check` reads it again.")
        loaded = Loaded(Config(), os.environ, frozenset(), (), ())
    else:
        yield from _configuration(loaded)
    yield from _models(loaded.config, loaded.environ)
    yield _sandbox(loaded)
    yield _program("git", "Install git: without it there is no history to look at.")
    yield _program("rg", "Install ripgrep: without it, searching a large folder is slower.")


def _home(folder: Path) -> Iterator[Finding]:
    try:
        ensure_home(folder)
    except ConfigError as error:
        yield Finding("broken", "home", str(error), "Make room for it, or set DENIZEN_HOME to another place.")
        return
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("broken", "home", f"{folder} can't be written.", "Make it yours, or set DENIZEN_HOME.")
    elif folder.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield Finding("improvable", "home", f"{folder} is open to other users.", f"Close it: chmod 700 {folder}")
    else:
        yield Finding("fine", "home", f"{folder}, for you alone")
    free = shutil.disk_usage(folder).free
    state = "fine" if free > _LITTLE_SPACE else "improvable" if free > _NO_SPACE else "broken"
    yield Finding(state, "disk", f"{free / 1e9:.1f} GB free", "" if state == "fine" else "Make room: sessions grow.")


def _configuration(loaded: Loaded) -> Iterator[Finding]:
    read = ", ".join(map(str, loaded.sources))
    yield Finding("fine", "configuration", read or "the defaults (`denizen config init` makes a file to change them)")
    for text in loaded.notices:
        yield Finding("improvable", "configuration", text)


def _models(config: Config, environ: Mapping[str, str]) -> Iterator[Finding]:
    ways = [reach(name, config, environ) for name in dict.fromkeys((*config.providers, *PROVIDERS))]
    keys = [f"{way.provider.name} ({way.keys[0].source})" for way in ways if way.keys]
    servers = [way.base_url for way in ways if way.provider.local and served_models(way.base_url)]
    yield Finding("fine", "keys", ", ".join(keys) or "none")
    yield Finding("fine", "local servers", ", ".join(servers) or "none")
    try:
        name = open_model(config, environ=environ, clock=SystemClock()).name
    except ConfigError as error:
        yield Finding("broken", "model", str(error), "`denizen models` shows those that can be used.")
        return
    advice = "Set a key like ANTHROPIC_API_KEY, or start a local server like ollama, for a language model."
    offline = name == "offline"
    yield Finding("improvable" if offline else "fine", "model", name, advice if offline else "")


def _sandbox(loaded: Loaded) -> Finding:
    sandbox = choose_sandbox(loaded.config.sandbox, environ=loaded.environ, home=home())
    found = f"{sandbox.name}: {sandbox.promises}"
    if sandbox.confines:
        return Finding("fine", "sandbox", found)
    return Finding(
        "improvable", "sandbox", found, "Install bubblewrap (bwrap); until then you are asked about commands."
    )


def _program(name: str, advice: str) -> Finding:
    try:
        ran = subprocess.run([name, "--version"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return Finding("improvable", name, "not found", advice)
    return Finding("fine", name, ran.stdout.partition("\n")[0])
