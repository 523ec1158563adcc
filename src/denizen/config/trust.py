"""Which folders the user trusts: files that could run something are read only there.

These are `denizen.toml`, `.mcp.json`, skills and definitions of subagents.
"""

from pathlib import Path
from typing import Literal

import msgspec

from denizen.config.files import read_settings, write_private
from denizen.config.home import places, sole_writer
from denizen.config.settings import Config
from denizen.errors import ConfigError

SKILL_FOLDERS = (".denizen/skills", ".claude/skills", "skills")
AGENT_FOLDERS = (".denizen/agents", ".claude/agents")


class ProjectFiles(msgspec.Struct, frozen=True):
    """The bytes of a folder's `denizen.toml` and `.mcp.json`; None: it has none."""

    settings: bytes | None
    servers: bytes | None


class _Decision(msgspec.Struct, frozen=True, omit_defaults=True):
    """The user's decision about a folder, and the SHA-256 of the `ProjectFiles` it then had ("": none)."""

    trusted: bool
    settings: str = ""
    servers: str = ""


def is_trusted(home: Path, folder: Path) -> bool:
    """Whether the user trusts this very folder, not those above or in it, with the `ProjectFiles` it has now.

    A file that was added or changed since must be trusted again. Raises ConfigError when the record can't be read.
    """
    return decided(home, folder, project_files(folder)) == "trusted"


def decided(home: Path, folder: Path, files: ProjectFiles) -> Literal["trusted", "refused", ""]:
    """The user's decision about a folder with those files; empty before the first one."""
    decision = _decisions(home).get(str(folder.resolve()))
    if decision is None or (decision.settings, decision.servers) != _digests(files):
        return ""
    return "trusted" if decision.trusted else "refused"


def trust(home: Path, folder: Path, *, trusted: bool = True) -> None:
    """Record that the user trusts a folder with its present files, or doesn't. Raises ConfigError if it isn't one."""
    folder = folder.resolve()
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder, so it can't be trusted.")
    with sole_writer(home):
        decision = _Decision(trusted, *_digests(project_files(folder)))
        record = _decisions(home) | {str(folder): decision}
        write_private(_record(home), msgspec.json.format(msgspec.json.encode(record)))


def awaiting_trust(config: Config) -> list[str]:
    """Files of the workspace that are read only once the user trusts it; empty once the user has decided."""
    home, folder = places(config)
    files = project_files(folder)
    found = [
        name for name, data in (("denizen.toml", files.settings), (".mcp.json", files.servers)) if data is not None
    ]
    if folder != config.agent.workspace_dir:
        found += [name for name in SKILL_FOLDERS if next((folder / name).glob("*/SKILL.md"), None)]
        found += [name for name in AGENT_FOLDERS if next((folder / name).glob("*.md"), None)]
    return [] if decided(home, folder, files) else found


def project_files(folder: Path) -> ProjectFiles:
    """The files of a folder. Raises ConfigError when they can't be read."""
    return ProjectFiles(read_settings(folder / "denizen.toml"), read_settings(folder / ".mcp.json"))


def _decisions(home: Path) -> dict[str, _Decision]:
    path = _record(home)
    try:
        return msgspec.json.decode(read_settings(path) or b"{}", type=dict[str, _Decision])
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path} is damaged: {error}. Remove it to be asked again about every folder.") from error


def _record(home: Path) -> Path:
    return home / "trust.json"


def _digests(files: ProjectFiles) -> tuple[str, str]:
    import hashlib

    settings, servers = (
        "" if data is None else hashlib.sha256(data).hexdigest() for data in (files.settings, files.servers)
    )
    return settings, servers
