"""How a provider is reached: what is known of it, what the user set, and the keys that are there."""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import urlsplit

from denizen.config.settings import Config, ProviderSettings
from denizen.errors import ConfigError
from denizen.models.providers import NEW_LIMIT, PROVIDERS, Provider, provider_named


class Reference(NamedTuple):
    """A model by name; an empty `model` is the provider's usual one."""

    provider: str
    model: str


class Key(NamedTuple):
    """A key: the id of its auth profile, itself, and the setting or environment variable that it comes from."""

    profile_id: str
    secret: str
    source: str


@dataclass(frozen=True, slots=True)
class Reach:
    """A provider as it is configured. `local` in `provider` says whether it runs on this machine."""

    provider: Provider
    settings: ProviderSettings
    base_url: str
    keys: Sequence[Key]

    @property
    def address(self) -> str:
        """Where it is, for people."""
        return shown(self.base_url)

    def missing(self) -> str:
        """What to do before it can be asked; empty: nothing."""
        if self.keys or not self.provider.key_variable or self.settings.base_url:
            return ""
        name = self.provider.name
        return f"set {self.provider.key_variable}, or providers.{name}.auth_profiles in denizen.toml"


def parse_model(text: str) -> Reference:
    """`provider:model`, or `provider` alone for its usual model. Raises ConfigError where there is no provider."""
    provider, _, model = text.strip().partition(":")
    if not provider.strip():
        raise ConfigError(f'"{text}" names no model: write provider:model, like anthropic:claude-sonnet-5-5')
    return Reference(provider.strip().lower(), model.strip())


def reach(name: str, config: Config, environ: Mapping[str, str]) -> Reach:
    """How a provider is reached; one that nobody knows has no `base_url`.

    A known provider keeps its prices at a base_url on this machine: what listens there may be a proxy.
    """
    provider = provider_named(name)
    settings = config.providers.get(name) or config.providers.get(provider.name) or ProviderSettings()
    base_url = settings.base_url or provider.base_url
    local = provider.local or (provider.name not in PROVIDERS and on_this_machine(urlsplit(base_url).hostname or ""))
    provider = replace(provider, api=settings.api or provider.api, local=local)
    if provider.api == "openai" and (name.startswith("azure") or _is_azure(base_url)):
        provider = replace(provider, max_tokens=NEW_LIMIT, json_schema="always")
    return Reach(provider, settings, base_url, _keys(provider, settings, environ))


def _keys(provider: Provider, settings: ProviderSettings, environ: Mapping[str, str]) -> list[Key]:
    """The auth profiles that have a key; without any, the usual variable."""
    source = f"providers.{provider.name}.auth_profiles"
    if settings.auth_profiles:
        return [Key(profile.id, profile.api_key, source) for profile in settings.auth_profiles if profile.api_key]
    secret = environ.get(provider.key_variable, "") if provider.key_variable else ""
    return [Key("environment", secret, provider.key_variable)] if secret.strip() else []


def _is_azure(base_url: str) -> bool:
    """Whether OpenAI's own models are served there by Azure."""
    where = urlsplit(base_url)
    return (where.hostname or "").endswith((".azure.com", ".azure-api.net", ".azure.us", ".azure.cn"))


def on_this_machine(host: str) -> bool:
    """Whether a host is this machine by its name or address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def shown(base_url: str) -> str:
    """The address for people: without a password, and without what follows `?`, which may be a key."""
    return re.sub("[^/@]*@", "", base_url.partition("?")[0], count=1)
