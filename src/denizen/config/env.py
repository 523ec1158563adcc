"""Variables in settings: `${VAR}`, filled in from the environment and from the home's `.env`."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from denizen.config.files import as_text, read_settings
from denizen.config.pattern import pattern
from denizen.errors import ConfigError

_ASSIGNMENT = pattern(
    r"""(?:export\s+)?(?P<name>[A-Za-z_]\w*)\s*=\s*
    (?:'(?P<literal>[^']*)'|"(?P<escaped>(?:[^"\\]|\\.)*)"|(?P<bare>[^'"\s\#].*?)?)
    \s*(?:(?<=\s)\#.*)?""",
    re.ASCII | re.VERBOSE,
)
_ESCAPE = pattern(r"\\(.)")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_REFERENCE = pattern(r"\$\$\{|\$\{(?:([A-Za-z_]\w*)\})?", re.ASCII)


def read_dotenv(home: Path) -> dict[str, str]:
    """The variables of the home's `.env`; empty without such a file. Raises ConfigError."""
    path = home / ".env"
    return parse_dotenv(as_text(read_settings(path) or b"", path), str(path))


def parse_dotenv(text: str, name: str) -> dict[str, str]:
    """The variables of a `.env` file called `name`: `export`, quotes and comments, one to a line.

    Raises ConfigError naming the line, and never its text, which may be a secret.
    """
    variables: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        match = _ASSIGNMENT.fullmatch(stripped)
        if match is None:
            raise ConfigError(f'{name}:{number}: expected NAME=value, or NAME="value" where it has quotes or #.')
        if match["escaped"] is not None:
            value = _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), match["escaped"])
        else:
            value = match["literal"] or match["bare"] or ""
        variables[match["name"]] = value
    return variables


def references(text: str) -> Iterator[str]:
    """The variables that a setting's text refers to; an empty name for a `${` without one."""
    return (match[1] or "" for match in _REFERENCE.finditer(text) if match[0] != "$${")


def fill_in(value: Any, environ: Mapping[str, str]) -> Any:
    """A setting with every `${VAR}` replaced by that variable and `$${` by `${`, in tables and lists too.

    Raises KeyError for a variable that `environ` lacks.
    """
    if isinstance(value, str):
        return _REFERENCE.sub(lambda match: "${" if match[0] == "$${" else environ[match[1]], value)
    if isinstance(value, list):
        return [fill_in(item, environ) for item in value]
    if isinstance(value, dict):
        return {key: fill_in(item, environ) for key, item in value.items()}
    return value


def escape(text: str) -> str:
    """The text as a setting, with its `${` escaped."""
    return text.replace("${", "$${")
