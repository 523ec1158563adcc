"""An agent's directory: where its settings come from, and what it needs to sign in."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from denizen.config import Config
from denizen.config.load import Loaded, load
from denizen.config.toml import SettingsFile
from denizen.errors import ConfigError
from denizen.models.providers import PROVIDERS
from denizen.sessions import SessionKey
from denizen.worlds.moo.settings import MooSettings
from denizen.worlds.moo.token_pages import avatar

SOUL, PATCH, SETTINGS, OLD_SETTINGS = "SOUL.md", "SOUL.patch.md", "denizen.toml", "settings.toml"
UNTRUSTED_SETTINGS = ("model", "fallback_models", "moo")
"""Settings that an agent's denizen.toml may change in a directory that isn't trusted."""

_PROVIDERS = {"lm_studio": "lmstudio"}
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True, slots=True)
class AgentFolder:
    """An agent's directory, read.

    `loaded` is the whole configuration, `settings` its `[moo]`; `notices` are lines for the operator.
    """

    path: Path
    loaded: Loaded
    settings: MooSettings
    notices: tuple[str, ...]

    @property
    def name(self) -> str:
        """The agent's name: that of its directory."""
        return self.path.name

    @property
    def config(self) -> Config:
        """The configuration that it plays with: no servers, and what its session may cost, which is its whole life."""
        config, most = self.loaded.config, self.settings.session_usd or math.inf
        return msgspec.structs.replace(config, mcp={}, budget=msgspec.structs.replace(config.budget, session_usd=most))

    @property
    def session_key(self) -> str:
        """The session that holds what it thought and did, whatever process it ran in."""
        account = f"{self.settings.user}@{self.settings.host}"
        return str(SessionKey.typed("world", channel="moo", account=account, agent=self.name))

    @property
    def password(self) -> str:
        """The password to sign in with, or an empty string."""
        return self.settings.password or self.loaded.environ.get(self.settings.password_env, "")

    @property
    def missing_password(self) -> str:
        """What to do about a password that signing in needs and that isn't set; empty: nothing is missing."""
        settings = self.settings
        if settings.transport == "ssh":
            is_needed = not settings.key_file
        else:
            is_needed = any("{password}" in line for line in settings.login)
        if self.password or not is_needed:
            return ""
        other = ", or moo.key_file" if settings.transport == "ssh" else ""
        return f"{SETTINGS}: no password is set. Set {settings.password_env} in the environment{other}."


def open_folder(
    path: Path,
    *,
    environ: Mapping[str, str] | None = None,
    config: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> AgentFolder:
    """Read the directory of an agent.

    Over the home's settings (or the file `config`) count those of a settings.toml there, then its denizen.toml, then
    `MOO_TOKEN_CHAIN`; over all of them `overrides`. Raises ConfigError with a line for each mistake.
    """
    path = path.resolve()
    if not (path / SOUL).is_file():
        raise ConfigError(f"{path} isn't an agent's directory: it has no {SOUL}. Make one: denizen moo init {path}")
    own = SettingsFile.read(path / SETTINGS).data
    old, notices = _read_old(SettingsFile.read(path / OLD_SETTINGS))
    moo = {key: value for key, value in old.pop("moo", {}).items() if key not in own.get("moo", {})}
    given = {key: value for key, value in old.items() if key not in own} | ({"moo": moo} if moo else {})
    loaded = load(
        config, environ=environ, workspace=path, overrides={**given, **(overrides or {})}, always=UNTRUSTED_SETTINGS
    )
    settings = loaded.config.section("moo", MooSettings)
    if chain := loaded.environ.get("MOO_TOKEN_CHAIN"):
        settings = msgspec.structs.replace(settings, token_chain=[*filter(None, map(str.strip, chain.split(",")))])
    if not settings.user:
        raise ConfigError(f"{path / SETTINGS}: [moo] lacks `user`, the player to sign in as.")
    return AgentFolder(path, loaded, settings, (*loaded.notices, *notices))


def folder_of(group: Path, player: str) -> Path | None:
    """The directory, in that of a group, of the agent that plays as `player`, or None."""
    for soul in sorted(group.glob(f"*/{SOUL}")):
        with suppress(ConfigError):
            moo, old = (SettingsFile.read(soul.parent / name).data for name in (SETTINGS, OLD_SETTINGS))
            if avatar(str(moo.get("moo", {}).get("user") or old.get("ssh", {}).get("user") or "")) == player:
                return soul.parent
    return None


def _read_old(file: SettingsFile) -> tuple[dict[str, Any], list[str]]:
    """The settings.toml as current settings, and notices for its author."""
    moo: dict[str, Any] = {}
    found: dict[str, Any] = {"moo": moo} if file.data else {}
    notices: list[str] = []
    tables = {name: table for name, table in file.data.items() if isinstance(table, dict)}
    for name, table in tables.items():
        known = MooSettings.__struct_fields__ if name in {"ssh", "agent"} else ()
        moo |= {key: value for key, value in table.items() if key in known}
        unused = [key for key in table if key not in known]
        if name == "llm":
            unused = [*_read_llm(table, found)]
        notices += [f"{file.locate((name, key))}: {name}.{key} has no effect here." for key in unused]
    if "password" in tables.get("ssh", {}):
        notices.append(
            f"{file.locate(('ssh', 'password'))}: ssh.password is a password in a file that may be shared. Safer: "
            "MOO_PASSWORD=… in .env in the home, and remove it here."
        )
    return found, notices


def _read_llm(llm: Mapping[str, Any], found: dict[str, Any]) -> list[str]:
    """Add the model that `[llm]` names, its key and its server on this machine; the keys that aren't used."""
    name = str(llm.get("provider", ""))
    provider = _PROVIDERS.get(name, name)
    if provider and "model" in llm:
        found["model"] = f"{provider}:{llm['model']}"
    settings: dict[str, Any] = {}
    variable, usual = llm.get("api_key_env"), PROVIDERS.get(provider)
    if variable and not (usual and usual.key_variable == variable):
        settings["auth_profiles"] = [{"id": "settings.toml", "api_key": f"${{{variable}}}"}]
    if urlsplit(str(llm.get("base_url", ""))).hostname in _LOOPBACK:  # elsewhere it could collect keys
        settings["base_url"] = llm["base_url"]
    if provider and settings:
        found["providers"] = {provider: settings}
    used = {"provider", "model", "api_key_env", *settings}
    return [key for key in llm if key not in used]
