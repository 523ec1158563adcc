"""Reading the configuration: the home's `denizen.toml`, over it that of a trusted project, over both the options."""

import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec

from denizen.config.check import check, convert, fields
from denizen.config.env import fill_in, read_dotenv, references
from denizen.config.files import as_text, read_settings
from denizen.config.home import expand, find_home, located, places
from denizen.config.pattern import pattern
from denizen.config.people import Person
from denizen.config.settings import Config
from denizen.config.toml import KeyPath, SettingsFile, dotted, parse, strings
from denizen.config.trust import decided, project_files
from denizen.errors import ConfigError

_HOME_ONLY: tuple[tuple[str, ...], ...] = (
    ("providers",),
    ("models",),
    ("budget",),
    ("memory",),
    ("web", "search"),
    ("mcp",),
    ("gateway",),
    ("channels",),
    ("people",),
    ("agent", "workspace_dir"),
    ("agent", "restrict_to_workspace"),
    ("agent", "driver"),
    ("sandbox", "toolchains"),
    ("sandbox", "environment"),
    ("sandbox", "withhold"),
)
"""What no project can set, trusted or not: where keys and memories go, what is spent, read outside it, run here,
and who reaches the gateway.

Its MCP servers are in its `.mcp.json`.
"""
_CHANNEL_NAME = pattern(r"[A-Za-z0-9][\w-]{,39}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The configuration, and what else a host needs.

    `environ` is the process's environment over the home's `.env`; `secrets` is for the redactor; `sources` are the
    files of settings that were read; `notices` are lines for the user.
    """

    config: Config
    environ: Mapping[str, str]
    secrets: Mapping[str, str]
    sources: tuple[Path, ...]
    notices: tuple[str, ...]


def load_config(
    path: Path | str | None = None,
    *,
    home: Path | str | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    workspace: Path | str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Config:
    """The user's settings, ready for `run_agent`: those of `path`, by default of `denizen.toml` in `home`.

    `home` is `$DENIZEN_HOME`, else `~/.denizen`; `workspace`, where the agent works, the git repository around `cwd`,
    else `agent.workspace_dir`. `overrides` are nested like the file and override it: `{"agent": {"top_p": 0.9}}`.
    A table of an installed world is read into that world's struct: `section` of the configuration has it.

    Raises ConfigError with a line for every setting that is unknown, mistyped or missing.
    """
    return load(path, home=home, environ=environ, cwd=cwd, workspace=workspace, overrides=overrides).config


def load(
    path: Path | str | None = None,
    *,
    home: Path | str | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    workspace: Path | str | None = None,
    overrides: Mapping[str, Any] | None = None,
    always: Collection[str] = (),
) -> Loaded:
    """Read the settings of the file `path`; by default of `denizen.toml` in the home, which may be missing.

    Those of the workspace's `denizen.toml` override them if the user trusts the folder, and `overrides`, nested like
    the file, override both. Tables merge, all else replaces; but a project's policy rules come before the user's own,
    which so decide where both match. `always` names settings and tables of the workspace's file that are read although
    nobody trusts the folder; `${…}` isn't filled in there. `environ` and `cwd` are the process's unless given. Raises
    ConfigError with a line for every setting that is unknown, mistyped or missing.
    """
    from denizen.config.redact import secrets_of

    process, cwd = os.environ if environ is None else environ, cwd or Path.cwd()
    root = find_home(process, cwd, Path(home) if home else None)
    dotenv = read_dotenv(root)
    reader = _Reader({**dotenv, **process})
    reader.notices.extend(_open_to_others(root / ".env") if dotenv else ())
    file = cwd / expand(path, process) if path else root / "denizen.toml"
    own = reader.own(file, required=path is not None)
    options = reader.checked(SettingsFile("The options", "", overrides or {}))

    def located_config(settings: Mapping[str, Any]) -> Config:
        chosen = Path(workspace) if workspace else None
        typed = convert(_merged(settings, options), reader.root)
        channels = {name: convert(typed.channels[name], table) for name, table in reader.channels.items()}
        typed = msgspec.structs.replace(typed, channels={**typed.channels, **channels})
        return located(typed, environ=process, cwd=cwd, home=root, workspace=chosen)

    config = located_config(own)
    project = reader.project(config, besides=file, always=always)
    if project:
        # of the rules that match, the last decides: the user's own
        rules = [rule for settings in (project, own) for rule in settings.get("policy", {}).get("rules", [])]
        hooks = [hook for settings in (own, project) for hook in settings.get("hooks", [])]
        config = located_config(_merged(_merged(own, project), {"policy": {"rules": rules}, "hooks": hooks}))
    return Loaded(config, reader.environ, secrets_of(config, dotenv), tuple(reader.sources), tuple(reader.notices))


class _Reader:
    """Reads files of settings; keeps which were read, and the notices for the user."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.root = Config
        self.channels: dict[str, type[msgspec.Struct]] = {}
        self.sources: list[Path] = []
        self.notices: list[str] = []

    def own(self, path: Path, *, required: bool) -> dict[str, Any]:
        """The settings of the user's own file."""
        data = read_settings(path)
        if data is None:
            if required:
                raise ConfigError(f"{path} doesn't exist. Create it with: denizen config init")
            return {}
        file = parse(as_text(data, path), str(path))
        settings = self.checked(file)
        self.sources.append(path)
        plain = [
            key for key, text in strings(file.data) if _is_secret(key, text) and text and not any(references(text))
        ]
        self.notices += [
            f"{file.locate(key)}: {dotted(key)} holds a key. "
            "Safer: put it in .env in the home and write a reference, `${NAME}`."
            for key in plain
        ]
        self.notices += _open_to_others(path) if plain else ()
        embeddings = file.data.get("memory", {}).get("embeddings", {})
        if embeddings.get("model") and not embeddings.get("base_url"):
            self.notices.append(
                f"{file.locate(('memory', 'embeddings', 'model'))}: memory.embeddings.model has no effect without a "
                "memory.embeddings.base_url. The model that thinks is named above the first [table]."
            )
        return settings

    def project(self, config: Config, *, besides: Path, always: Collection[str]) -> dict[str, Any]:
        """The settings of the workspace's own files, if the user trusts it; else those in `always`.

        Its `denizen.toml` can't be `besides`.
        """
        home, folder = places(config)
        files, path, servers = project_files(folder), folder / "denizen.toml", folder / ".mcp.json"
        data = None if files.settings is None or (besides.exists() and path.samefile(besides)) else files.settings
        found = [each for each, there in ((path, data), (servers, files.servers)) if there is not None]
        decision = decided(home, folder, files) if found else ""
        if decision != "trusted":
            given, rest = self._given_untrusted(path, data, always)
            left = {path: f" but for {', '.join(given)}" if given else ""} if rest else {}
            left |= {servers: ""} if files.servers is not None else {}
            if not decision:
                trust = f"If you trust this folder: denizen trust {folder}"
                self.notices += [f"{each} is not read{but}. {trust}" for each, but in left.items()]
            return given
        self.sources += found
        settings = {} if data is None else self._project_settings(parse(as_text(data, path), str(path)))
        if files.servers is not None:
            from denizen.config.mcp_json import read_mcp_json

            given, notices = read_mcp_json(as_text(files.servers, servers), servers, self.environ)
            settings["mcp"] = {name: each for name, each in given.items() if name not in config.mcp}
            self.notices += notices
        return settings

    def _given_untrusted(
        self, path: Path, data: bytes | None, always: Collection[str]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The settings in `always` of a file that nobody trusts, and the others, which aren't even checked."""
        if data is None or not always:
            return {}, {} if data is None else {path.name: data}
        file = parse(as_text(data, path), str(path))
        given = {key: value for key, value in file.data.items() if key in always}
        rest = {key: value for key, value in file.data.items() if key not in always}
        for key, text in strings(given):
            if any(references(text)):
                raise ConfigError(
                    f"{file.locate(key)}: {dotted(key)} needs a variable, which is filled in only in a folder that you "
                    f"trust: denizen trust {path.parent}"
                )
        self.sources += [path] if given else []
        return self.checked(SettingsFile(file.name, file.text, given)), rest

    def _project_settings(self, file: SettingsFile) -> dict[str, Any]:
        settings = self.checked(file)
        for key in _HOME_ONLY:
            table = settings.get(key[0], {}) if len(key) > 1 else settings
            if table.pop(key[-1], None) is not None:
                self.notices.append(f"{file.locate(key)}: {dotted(key)} is left out: a project can't set it.")
        return settings

    def checked(self, file: SettingsFile) -> dict[str, Any]:
        """The settings of a file with their variables filled in. Raises ConfigError for mistakes in it."""
        self._add_worlds(file.data.keys() - fields(self.root).keys())
        channels = self._channels_of(file)
        check(file, self.root, self.environ, channels)
        self.channels |= channels
        settings = fill_in(dict(file.data), self.environ)
        typed = convert(settings, self.root)
        for name, server in typed.mcp.items():
            if server.command and server.url:
                where = file.locate(("mcp", name))
                raise ConfigError(f"{where}: {dotted(('mcp', name))} has a `command` and a `url`. Remove one of them.")
        if typed.agent.timezone:
            from denizen.config.zone import user_zone

            try:
                user_zone(typed)
            except ConfigError as error:
                raise ConfigError(f"{file.locate(('agent', 'timezone'))}: {error}") from error
        for name, table in typed.people.items():
            try:
                Person.of(name, table)
            except ConfigError as error:
                raise ConfigError(f"{file.locate(('people', name))}: {error}") from error
        for number, rule in enumerate(typed.policy.rules):
            from denizen.config.rules import check_examples

            try:
                check_examples(rule)
            except ConfigError as error:
                raise ConfigError(f"{file.locate(('policy', 'rules', number))}: {error}") from error
        return settings

    def _channels_of(self, file: SettingsFile) -> dict[str, type[msgspec.Struct]]:
        """The settings structs for a file's tables `[channels.NAME]`, by name. Raises ConfigError for unknown kinds.

        A kind that can't be loaded is a notice, and its tables aren't read: the other channels go on.
        """
        from denizen.config.plugins import channel_entries, load_entry_point

        found, tables = dict[str, type[msgspec.Struct]](), file.data.get("channels")
        for name, table in tables.items() if isinstance(tables, dict) else ():
            where = f"{file.locate(('channels', name))}: {dotted(('channels', name))}"
            kind = (isinstance(table, dict) and table.get("type")) or name
            entry = (entries := channel_entries()).get(kind)
            if entry is None:
                known = f"available: {', '.join(entries)}" if entries else "none is installed"
                raise ConfigError(f"{where}: unknown kind of channel {kind!r}; {known}. Set `type`.")
            if not _CHANNEL_NAME.fullmatch(name):
                raise ConfigError(f"{where}: a channel's name has up to 40 letters, digits, `-` and `_`.")
            try:
                found[name] = load_entry_point(entry, "channel").settings
            except ConfigError as error:
                self.notices.append(f"{where} is not read. {error}")
        return found

    def _add_worlds(self, names: Set[str]) -> None:
        """Give the struct of the whole file a table for each installed world of these names that has settings."""
        from denizen.config.plugins import entry_points, load_entry_point

        found = [entry for entry in entry_points("denizen.worlds") if entry.name in names] if names else []
        worlds = {entry.name: getattr(load_entry_point(entry, "world"), "settings", None) for entry in found}
        tables = [(name, each, msgspec.field(default_factory=each)) for name, each in worlds.items() if each]
        if tables:
            options = {"frozen": True, "kw_only": True, "forbid_unknown_fields": True}
            self.root = cast("type[Config]", msgspec.defstruct("Config", tables, bases=(self.root,), **options))


def _is_secret(key: KeyPath, text: str) -> bool:
    from denizen.config.redact import is_secret, is_secret_header

    if key[0] == "channels":
        return is_secret(str(key[-1]), text, even_words=True)
    return key[-1] == "api_key" or (key[-2:-1] == ("headers",) and is_secret_header(str(key[-1])))


def _open_to_others(path: Path) -> Iterator[str]:
    """A warning when other users of the machine can read a file."""
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield f"{path} holds keys, and other users can read it. Close it to them: chmod 600 {path}"


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both tables in one: tables merge, everything else of `over` replaces."""
    merged = dict(under)
    for key, value in over.items():
        beneath = merged.get(key)
        merged[key] = _merged(beneath, value) if isinstance(beneath, dict) and isinstance(value, dict) else value
    return merged
