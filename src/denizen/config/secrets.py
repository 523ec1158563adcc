"""Secrets among the settings: their values, for the redactor, and advice on where to keep them."""

import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from denizen.config.check import KeyPath, Source, dotted, strings
from denizen.config.env import fill_in, references

_SECRET_HEADER = re.compile("auth|cookie|key|secret|token", re.IGNORECASE)


def secret_values(source: Source, environ: Mapping[str, str]) -> Iterator[str]:
    """What must never be shown: the keys and header values of a file, and the variables that they refer to."""
    for path, text in strings(source.data):
        if _is_key(path) or _is_header(path):
            yield from (environ[name] for name in references(text))
        if _is_plain_secret(path, text):
            yield fill_in(text, environ)


def secret_notices(source: Source, path: Path) -> Iterator[str]:
    """Advice on the keys that stand in a file as they are."""
    plain = [place for place, text in strings(source.data) if _is_plain_secret(place, text)]
    for place in plain:
        yield (
            f"{source.place(place)}: {dotted(place)} holds a key. "
            f"Safer: put it in .env in the home and write a reference, `${{NAME}}`."
        )
    if plain:
        yield from open_to_others(path)


def open_to_others(path: Path) -> Iterator[str]:
    """A warning when other users of the machine can read a file."""
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield f"{path} holds keys, and other users can read it. Close it to them: chmod 600 {path}"


def _is_plain_secret(path: KeyPath, text: str) -> bool:
    kept = _is_key(path) or (_is_header(path) and _SECRET_HEADER.search(str(path[-1])) is not None)
    return kept and bool(text) and not any(references(text))


def _is_key(path: KeyPath) -> bool:
    return path[-1] == "api_key"


def _is_header(path: KeyPath) -> bool:
    return path[-2:-1] == ("headers",)
