"""Files whose front matter says what they define (skills, subagents): the user's own, and a project's."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from denizen.config.files import read_file

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)\n---[ \t]*(\n|$)", re.DOTALL)
_PLAIN_FIELD = re.compile(r"""^([A-Za-z][\w-]*):[ \t]+([^\s"'|>[{&*!#].*)$""", re.MULTILINE)
_MAX_BYTES = 64_000  # of a file; its front matter is at the beginning
_MAX_DEFINITIONS = 100  # of a kind

Origin = Literal["user", "project", "built-in"]
"""Whose a definition is."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


D = TypeVar("D", bound=_Named)


def find_definitions(
    kind: str,
    pattern: str,
    read: Callable[[Path, Origin], D],
    own: Path,
    *,
    project: Path,
    folders: Sequence[str],
    trusted: bool,
    built_in: Sequence[Path] = (),
) -> tuple[dict[str, D], list[str]]:
    """Definitions by name, and notices of what is left out: the user's `own`, then those in the `folders` of a project
    where the user trusts it, then the built-in ones. Of two with one name the first counts.

    `read` raises OSError or ValueError for a file that can't be used.
    """
    paths: list[tuple[Origin, Path]] = [("user", path) for path in sorted(own.glob(pattern))]
    notices: list[str] = []
    for folder in [project / name for name in folders]:
        found = sorted(folder.glob(pattern))
        if found and not trusted:
            notices.append(f"The {kind}s in {folder} are left out. If you trust this folder: denizen trust {project}")
            continue
        for path in found:
            if path.resolve().is_relative_to(project.resolve()):
                paths.append(("project", path))
            else:
                notices.append(f"The {kind} {path} is left out: it is a link out of the project.")
    paths.extend(("built-in", path) for path in built_in)
    defined: dict[str, D] = {}
    for origin, path in paths:
        try:
            made = read(path, origin)
        except (OSError, ValueError) as error:
            notices.append(f"The {kind} {path} is left out: {error}.")
            continue
        if len(defined) < _MAX_DEFINITIONS:
            defined.setdefault(made.name, made)
        else:
            notices.append(f"The {kind} {path} is left out: the limit is {_MAX_DEFINITIONS}.")
    return defined, notices


def read_fields(path: Path, text: str | None = None) -> tuple[dict[str, Any], str]:
    """The front matter of a file, or of the `text` that counts, and the text below it.

    Raises OSError or ValueError if it has none.
    """
    data = read_file(path, _MAX_BYTES) or b""
    text = (data.decode("utf-8-sig", errors="replace") if text is None else text).replace("\r\n", "\n")
    match = _FRONT_MATTER.match(text)
    if match is None:
        raise ValueError("it doesn't begin with front matter between two lines of ---")
    return _front_matter(match[1]), text[match.end() :]


def _front_matter(text: str) -> dict[str, Any]:
    """The fields of a YAML front matter: text, lists and dicts. Raises ValueError if it isn't YAML.

    It is often written with what YAML forbids, as in `description: Use when: always`; such values are taken as they
    are.
    """
    import yaml  # it takes 20 ms

    def parse(text: str) -> object:
        return yaml.load(text, yaml.BaseLoader)  # noqa: S506 - it makes strings, lists and dicts only

    try:
        try:
            fields = parse(text)
        except yaml.YAMLError:
            fields = parse(_PLAIN_FIELD.sub(lambda field: f"{field[1]}: {json.dumps(field[2].rstrip())}", text))
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"its front matter isn't YAML ({str(error).splitlines()[0]})") from error
    return {str(name): value for name, value in fields.items()} if isinstance(fields, dict) else {}
