"""`denizen doctor`: what works here, and what to do about the rest."""

import os
import platform
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import click

from denizen.cli.home import home
from denizen.cli.models import why_in_use
from denizen.cli.output import output_width, write
from denizen.cli.text import printable, wrapped
from denizen.config import Config
from denizen.config.home import located, places
from denizen.config.load import Loaded, load
from denizen.errors import ConfigError, ToolRefused
from denizen.models import open_model
from denizen.models.http import ANSWER_SILENCE_S, CONNECT_TIMEOUT_S, STREAM_SILENCE_S
from denizen.models.local import is_listening, served_models
from denizen.models.providers import PROVIDERS, parse_model, provider_access, without_secrets
from denizen.runtime.clock import SystemClock
from denizen.tools.sandbox import choose_sandbox
from denizen.tools.web_search import chosen_search
from denizen.trusted.environment import editable_install_warning
from denizen.trusted.programs import find_program

_LOW_SPACE_BYTES, _NO_SPACE_BYTES = 500_000_000, 20_000_000  # bytes
_INDENT = 16
_SIGNS = {"fine": ("✓", "green"), "improvable": ("!", "yellow"), "broken": ("✗", "red")}

_LANGUAGE_MODEL = (
    "This is rules, not a language model, and answers little. To use one, set a key like ANTHROPIC_API_KEY in the "
    "environment or in .env in the home (`denizen models` names others), or start a server like ollama here."
)
_TIMEOUTS = (
    f"{CONNECT_TIMEOUT_S:g} s for a connection, {STREAM_SILENCE_S:g} s for the first and every further byte "
    f"of an answer ({ANSWER_SILENCE_S:g} s where it comes whole); a server that sends nothing isn't asked again"
)
_ANY = {"llamacpp"}
"""Servers that answer to every model's name."""


class Check(NamedTuple):
    """What was checked, how it is, what was found, and what to do about it."""

    state: Literal["fine", "improvable", "broken"]
    subject: str
    found: str
    advice: str = ""


@click.command()
def doctor() -> int:
    """Check what Denizen needs here: what was found, and what to do about it.

    The exit status is 0 when Denizen can be used, 1 when it can't.
    """
    broken = False
    for check in _checks():
        sign, colour = _SIGNS[check.state]
        write(click.style(f"{sign} {check.subject:13} ", fg=colour) + _indented(check.found).lstrip())
        if check.advice:
            write(_indented(f"→ {check.advice}"))
        broken = broken or check.state == "broken"
    good, bad = (
        'Denizen can be used: denizen ask "List the files"',
        "Fix what is marked ✗ before you use Denizen.",
    )
    write(f"\n{bad if broken else good}\n")
    return int(broken)


def _indented(text: str) -> str:
    return wrapped(f"{'':{_INDENT}}{' '.join(printable(text).split())}", output_width()) + "\n"


def _checks() -> Iterator[Check]:
    yield Check("fine", "python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield from _home(home())
    try:
        loaded = load()
    except ConfigError as error:
        yield Check("broken", "configuration", str(error), "Fix the file; `denizen config check` reads it again.")
        loaded = Loaded(located(Config(), environ=os.environ, cwd=Path.cwd()), os.environ, {}, (), ())
    else:
        read = ", ".join(map(str, loaded.sources))
        yield Check("fine", "configuration", read or "the defaults (`denizen config init` makes a file to change them)")
        for text in loaded.notices:
            yield Check("improvable", "configuration", text)
        yield Check("fine", "workspace", f"{loaded.config.workspace}, where the agent works if started here")
    yield from _models(loaded)
    sandbox = choose_sandbox(loaded.config.sandbox, environ=loaded.environ, home=home())
    state = "improvable" if sandbox.advice else "fine"
    yield Check(state, "sandbox", f"{sandbox.name}: {sandbox.promises}", sandbox.advice)
    if found := editable_install_warning(places(loaded.config)[1].resolve()):
        yield Check("improvable", "installation", found)
    yield _web_search(loaded)
    yield _program("git", "Install git: without it, there is no history to read.")
    yield _program("rg", "Install ripgrep: without it, searching a large folder is slower.")


def _home(folder: Path) -> Iterator[Check]:
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not there.is_dir():
        found = f"{folder} can't be created: {there} is a file."
        yield Check("broken", "home", found, "Set DENIZEN_HOME to another path.")
        return
    if not os.access(there, os.R_OK | os.W_OK | os.X_OK):
        yield Check(
            "broken", "home", f"{there} can't be written.", "Change its owner or permissions, or set DENIZEN_HOME."
        )
    elif there != folder:
        yield Check("fine", "home", f"{folder} (will be created when first needed)")
    elif folder.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield Check("improvable", "home", f"{folder} is open to other users.", f"Close it: chmod 700 {folder}")
    else:
        yield Check("fine", "home", f"{folder}, accessible to you alone")
    free = shutil.disk_usage(there).free
    state = "fine" if free > _LOW_SPACE_BYTES else "improvable" if free > _NO_SPACE_BYTES else "broken"
    yield Check(
        state, "disk", f"{free / 1e9:.1f} GB free", "" if state == "fine" else "Free some space: sessions grow."
    )


def _web_search(loaded: Loaded) -> Check:
    try:
        search = chosen_search(loaded.config.web, loaded.environ)
    except ToolRefused as missing:
        return Check("improvable", "web search", "none", str(missing))
    return Check("fine", "web search", f"{search.provider.title} at {without_secrets(search.base_url)}")


def _program(name: str, advice: str) -> Check:
    try:
        program = find_program(name, os.environ, Path.cwd())
        ran = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return Check("improvable", name, "not found", advice)
    return Check("fine", name, ran.stdout.partition("\n")[0])


def _models(loaded: Loaded) -> Iterator[Check]:
    """Keys, servers on this machine, the model in use and its fall-backs."""
    config, environ = loaded.config, loaded.environ
    accesses = [provider_access(name, config, environ) for name in dict.fromkeys((*config.providers, *PROVIDERS))]
    keys = [f"{access.provider.name} ({access.keys[0].source})" for access in accesses if access.keys]
    yield Check("fine", "keys", ", ".join(keys) or "none found in denizen.toml, the environment or .env in the home")
    here = {access.provider.name: access.base_url for access in accesses if access.provider.local}
    served = {url: served_models(url) for url in here.values()}
    servers = [f"{name} at {without_secrets(url)}" for name, url in here.items() if served[url]]
    yield Check("fine", "local servers", ", ".join(servers) or f"none ({', '.join(here)} were tried)")
    try:
        name = open_model(config, environ=environ, clock=SystemClock()).name
    except ConfigError as error:
        yield Check("broken", "model", str(error), "Or choose another: `denizen models` lists those that can be used.")
        return
    in_use = f"{name} ({why_in_use(loaded, name)})"
    if name == "offline":
        yield Check("improvable", "model", in_use, _LANGUAGE_MODEL)
    else:
        yield _local_trouble("model", name, loaded, served) or Check("fine", "model", in_use)
    for other in config.fallback_models:
        yield _local_trouble("fallback", other, loaded, served) or Check("fine", "fallback", other)
    yield Check("fine", "time-outs", _TIMEOUTS)


def _local_trouble(subject: str, name: str, loaded: Loaded, served: Mapping[str, Sequence[str]]) -> Check | None:
    """Why a server on this machine can't be asked for the model; None: it can, or isn't on this machine."""
    provider, model = parse_model(name)
    access = provider_access(provider, loaded.config, loaded.environ)
    if not access.provider.local:
        return None
    models = served.get(access.base_url, ())
    if not models and is_listening(access.base_url):
        found = f"{name}: the server at {access.address} doesn't list its models."
        return Check("improvable", subject, found, "It may need a key first; `denizen ask` shows whether it answers.")
    if not models:
        state = "improvable" if loaded.config.fallback_models else "broken"
        found = f"{name}: no server answers at {access.address}."
        return Check(state, subject, found, f"Start it, or set providers.{provider}.base_url to its address.")
    if access.provider.name in _ANY or not model or {model, f"{model}:latest"} & {*models}:
        return None
    found = f"{name}: the server at {access.address} doesn't have it."
    return Check("improvable", subject, found, f"Pull it there, or use one that it has: {', '.join(models[:5])}.")
