"""Where other assistants keep persona, memory, channels and jobs, as their documentation says."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from denizen.config.env import parse_dotenv
from denizen.config.extras import how_to_install
from denizen.config.files import as_text, read_settings
from denizen.errors import ConfigError

_DAILY_NOTES = (r"(?:workspace/)?memory/(\d{4})-(\d\d)-(\d\d)\.md", r"memory/\1\2/\1\2\3.md")
_VARIABLE = re.compile(r"([A-Z]+)_(?:ALLOWED_USERS|[A-Z_]*TOKEN)")


class ForeignSettings(NamedTuple):
    """An assistant's channels with their settings, the file that holds those, and its jobs."""

    channels: Mapping[str, Any]
    file: str
    jobs: Sequence[Any]


class Assistant(NamedTuple):
    """An assistant whose files can be imported from its folder, its skills from `skills/`.

    `files` are pairs of a pattern for a path in its folder and the path in our workspace.
    """

    files: Sequence[tuple[str, str]]
    read_settings: Callable[[Path], ForeignSettings]

    def target(self, source: str) -> str:
        """The path in our workspace; empty: the file isn't imported."""
        matches = ((re.fullmatch(pattern, source), target) for pattern, target in self.files)
        return next((match.expand(target) for match, target in matches if match), "")


def _read_openclaw(folder: Path) -> ForeignSettings:
    channels = table(_read_json(folder / "openclaw.json").get("channels"))
    return ForeignSettings(channels, "openclaw.json", _read_jobs(folder))


def _read_hermes(folder: Path) -> ForeignSettings:
    text = as_text(read_settings(folder / ".env") or b"", folder / ".env")
    channels = dict[str, dict[str, Any]]()
    for name, value in parse_dotenv(text, str(folder / ".env")).items():
        if value and (found := _VARIABLE.fullmatch(name)):
            key, kept = ("allowFrom", value.split(",")) if name.endswith("_ALLOWED_USERS") else (name, value)
            channels.setdefault(found[1].lower(), {})[key] = kept
    return ForeignSettings(channels, ".env", _read_jobs(folder))


def _read_nanobot(folder: Path) -> ForeignSettings:
    channels = table(_read_json(folder / "config.json").get("channels"))
    return ForeignSettings(channels, "config.json", _read_jobs(folder) + _read_jobs(folder / "workspace"))


ASSISTANTS = {
    "openclaw": Assistant(
        [(r"(?:workspace/)?((?:AGENTS|SOUL|USER|IDENTITY|TOOLS|MEMORY|HEARTBEAT)\.md)", r"\1"), _DAILY_NOTES],
        _read_openclaw,
    ),
    "hermes": Assistant([(r"(?:memories/)?((?:SOUL|MEMORY|USER)\.md)", r"\1")], _read_hermes),
    "nanobot": Assistant(
        [(r"(?:workspace/)?(?:memory/)?((?:AGENTS|SOUL|USER|TOOLS|MEMORY|HEARTBEAT)\.md)", r"\1"), _DAILY_NOTES],
        _read_nanobot,
    ),
}
"""By the name that the command takes."""


def table(value: Any) -> dict[str, Any]:
    """The value if it is a table, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """The value if it is a list, otherwise an empty one."""
    return value if isinstance(value, list) else []


def _read_jobs(folder: Path) -> list[Any]:
    return items(_read_json(folder / "cron/jobs.json").get("jobs"))


def _read_json(path: Path) -> dict[str, Any]:
    """A file's table, empty if the file is missing. Raises ConfigError for a file that is neither JSON nor JSON5."""
    text = as_text(read_settings(path) or b"{}", path)
    try:
        return table(json.loads(text))
    except (ValueError, RecursionError) as wrong:
        why = f"{path} isn't JSON: {wrong}."
    try:
        import json5

        return table(json5.loads(text))
    except ModuleNotFoundError as missing:
        raise ConfigError(f"{why} If it is JSON5, install the reader: {how_to_install('openclaw')}") from missing
    except (ValueError, RecursionError) as wrong:
        raise ConfigError(f"{why} It isn't JSON5, either: {wrong}. Repair the file, or move it away.") from wrong
