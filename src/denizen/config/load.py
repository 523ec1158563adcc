"""Reading the configuration: the home's `denizen.toml`, over it that of a trusted project, over both the options."""

import functools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from denizen.config.check import check, convert
from denizen.config.env import fill_in, read_dotenv
from denizen.config.files import as_text, read_settings
from denizen.config.home import expand, find_home, located, places
from denizen.config.secrets import open_to_others, secret_notices, secrets_of
from denizen.config.settings import Config, Rule
from denizen.config.source import Source, dotted, parse
from denizen.config.trust import decided, project_settings
from denizen.errors import ConfigError

_HOME_ONLY: tuple[tuple[str, ...], ...] = (
    ("providers",),
    ("models",),
    ("budget",),
    ("memory",),
    ("agent", "workspace_dir"),
    ("agent", "restrict_to_workspace"),
    ("agent", "driver"),
    ("sandbox", "toolchains"),
    ("sandbox", "environment"),
    ("sandbox", "withhold"),
)
"""What a project can't set, trusted or not: where keys and memories go, what is spent, read outside it, run here."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The configuration, and what a host needs beside it.

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
    else `agent.workspace_dir`. `overrides` are nested like the file and stand over it: `{"agent": {"top_p": 0.9}}`.
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
) -> Loaded:
    """Read the settings of the file `path`; by default of `denizen.toml` in the home, which may be missing.

    Over them come those of the workspace's `denizen.toml` if the user trusts the folder, and `overrides`, nested like
    the file. Tables merge, all else replaces; but a project's policy rules stand before the user's own, which so
    decide where both match. `environ` and `cwd` are the process's unless given. Raises ConfigError with a line for
    every setting that is unknown, mistyped or missing.
    """
    process, cwd = os.environ if environ is None else environ, cwd or Path.cwd()
    root = find_home(process, cwd, Path(home) if home else None)
    dotenv = read_dotenv(root)
    reading = _Reading({**dotenv, **process})
    reading.notices.extend(open_to_others(root / ".env") if dotenv else ())
    file = cwd / expand(path, process) if path else root / "denizen.toml"
    own = reading.own(file, required=path is not None)
    options = reading.checked(Source("The options", "", overrides or {}))
    place = functools.partial(
        located, environ=process, cwd=cwd, home=root, workspace=Path(workspace) if workspace else None
    )
    config = place(convert(_merged(own, options)))
    project = reading.project(config, besides=file)
    if project:
        config = place(convert(_merged(_over(own, project), options)))
    secrets = secrets_of(config, dotenv)
    return Loaded(config, reading.environ, secrets, tuple(reading.sources), tuple(reading.notices))


class _Reading:
    """Files as they are read, and what was learnt on the way."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.sources: list[Path] = []
        self.notices: list[str] = []

    def own(self, path: Path, *, required: bool) -> dict[str, Any]:
        """The settings of the user's own file."""
        data = read_settings(path)
        if data is None:
            if required:
                raise ConfigError(f"There is no file {path}. Make one with: denizen config init")
            return {}
        source = parse(as_text(data, path), str(path))
        settings = self.checked(source)
        self.sources.append(path)
        self.notices.extend([*secret_notices(source, path), *_without_effect(source)])
        return settings

    def project(self, config: Config, *, besides: Path) -> dict[str, Any]:
        """The settings of the workspace's own file, if the user trusts it; it can't be the file `besides`."""
        home, folder = places(config)
        path = folder / "denizen.toml"
        data = project_settings(folder)
        if data is None or (besides.exists() and path.samefile(besides)):
            return {}
        decision = decided(home, folder, data)
        if not decision:
            self.notices.append(f"{path} is not read. If you trust this folder: denizen trust {folder}")
        if decision != "trusted":
            return {}
        source = parse(as_text(data, path), str(path))
        settings = self.checked(source)
        self.sources.append(path)
        self._drop_home_only(settings, source)
        return settings

    def checked(self, source: Source) -> dict[str, Any]:
        """The settings of a source with their variables filled in. Raises ConfigError for what is wrong in it."""
        check(source, self.environ)
        settings = fill_in(dict(source.data), self.environ)
        rules = convert(settings).policy.rules
        if rules:
            _check_rules(rules, source)
        return settings

    def _drop_home_only(self, settings: dict[str, Any], source: Source) -> None:
        for path in _HOME_ONLY:
            table = settings.get(path[0], {}) if len(path) > 1 else settings
            if table.pop(path[-1], None) is not None:
                self.notices.append(f"{source.place(path)}: {dotted(path)} is left out: a project can't set it.")


def _check_rules(rules: list[Rule], source: Source) -> None:
    from denizen.config.rules import check_examples

    for number, rule in enumerate(rules):
        try:
            check_examples(rule)
        except ConfigError as error:
            raise ConfigError(f"{source.place(('policy', 'rules', number))}: {error}") from error


def _without_effect(source: Source) -> Iterator[str]:
    """What was meant for the top of a file, and stands below a table that has a setting of the same name."""
    embeddings = source.data.get("memory", {}).get("embeddings", {})
    if embeddings.get("model") and not embeddings.get("base_url"):
        yield (
            f"{source.place(('memory', 'embeddings', 'model'))}: memory.embeddings.model has no effect without a "
            f"memory.embeddings.base_url. The model that thinks is named above the first [table]."
        )


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both tables in one: tables merge, everything else of `over` replaces."""
    merged = dict(under)
    for key, value in over.items():
        beneath = merged.get(key)
        merged[key] = _merged(beneath, value) if isinstance(beneath, dict) and isinstance(value, dict) else value
    return merged


def _over(own: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """A project's settings over the user's own, its rules beneath them: of the rules that match, the last decides."""
    rules = [rule for settings in (project, own) for rule in settings.get("policy", {}).get("rules", [])]
    return _merged(_merged(own, project), {"policy": {"rules": rules}})
