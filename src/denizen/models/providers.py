"""Providers: where each one listens, where its key is, what is configured, and how it differs from its wire format.

A new one is one line in `PROVIDERS`, which has them in the order in which keys and local servers are looked for.
A provider that isn't here works too, by its `base_url`, as plain OpenAI format.
"""

import functools
import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from denizen.config.settings import Config, ModelSettings, ProviderSettings
from denizen.errors import ConfigError
from denizen.text.documents import PDF

COMPLETION_LIMIT = "max_completion_tokens"
"""OpenAI's name for the limit of an answer since its models think."""


Api = Literal["anthropic", "chat", "gemini", "responses"]


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider, and its quirks as data. Each default is what most of them do."""

    name: str
    base_url: str = ""
    key_variable: str = ""
    """The environment variable that usually holds the key; empty: it needs none."""
    console: str = ""
    """The page on which a person looks after keys and money."""
    local: bool = False
    """It runs on the user's machine: its calls cost nothing."""
    start: str = ""
    """The command that starts it."""
    api: Api = "chat"
    """The wire format; `chat` is Chat Completions."""
    chat_url: str = ""
    """Its base URL for Chat Completions; empty: the usual one."""
    max_tokens: str = "max_tokens"
    """The name of the field that limits the answer."""
    stream_usage: bool = True
    """A stream reports its usage only when `stream_options` asks for it."""
    json_schema: Literal["never", "object", "alone", "always"] = "alone"
    """When the schema of the answer may be sent: never, not itself but that JSON is wanted, in requests without tools,
    in all.
    """
    reasoning_field: str = ""
    """The field in which it wants the thoughts back that led to a tool call; empty: it doesn't."""
    id_chars: int = 0
    """Characters that the id of a tool call may have; 0: any number."""
    short_ids: bool = False
    """Ids of tool calls must be nine letters and digits."""
    reply_after_results: bool = False
    """Between the results of tools and what the user says there must be an answer."""
    reasoning_is_extra: bool = False
    """The tokens of thoughts aren't part of the tokens of the answer in its usage."""
    reasoning: Literal["effort", "object", "switch", "template"] = "effort"
    """How a request says how much to think: `reasoning_effort`, an object `reasoning`, a switch `thinking`, or by the
    model's own template.
    """
    documents: Sequence[str] = ()
    """Media types of the documents that it takes as files; of others it is sent the text."""
    cache_on_request: str = ""
    """Models, by the beginning of their names, whose prompts are cached only if the request asks for it."""


PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider(
            "anthropic",
            "https://api.anthropic.com",
            "ANTHROPIC_API_KEY",
            console="https://console.anthropic.com",
            api="anthropic",
            documents=(PDF, "text/plain"),
        ),
        Provider(
            "openai",
            "https://api.openai.com/v1",
            "OPENAI_API_KEY",
            console="https://platform.openai.com",
            api="responses",
            max_tokens=COMPLETION_LIMIT,
            id_chars=40,
            json_schema="always",
            documents=(PDF,),
        ),
        Provider(
            "openrouter",
            "https://openrouter.ai/api/v1",
            "OPENROUTER_API_KEY",
            console="https://openrouter.ai/settings",
            reasoning="object",
            documents=(PDF,),
            cache_on_request="anthropic/",
        ),
        Provider(
            "google",
            "https://generativelanguage.googleapis.com/v1beta",
            "GEMINI_API_KEY",
            console="https://aistudio.google.com",
            api="gemini",
            chat_url="https://generativelanguage.googleapis.com/v1beta/openai",
            documents=(PDF,),
        ),
        Provider("vertex", "https://aiplatform.googleapis.com/v1", api="gemini", documents=(PDF,)),
        Provider(
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "GEMINI_API_KEY",
            console="https://aistudio.google.com",
        ),
        Provider(
            "mistral",
            "https://api.mistral.ai/v1",
            "MISTRAL_API_KEY",
            console="https://console.mistral.ai",
            stream_usage=False,
            short_ids=True,
            reply_after_results=True,
        ),
        Provider(
            "deepseek",
            "https://api.deepseek.com",
            "DEEPSEEK_API_KEY",
            console="https://platform.deepseek.com",
            json_schema="object",
            reasoning_field="reasoning_content",
            reasoning="switch",
        ),
        Provider(
            "xai",
            "https://api.x.ai/v1",
            "XAI_API_KEY",
            console="https://console.x.ai",
            json_schema="always",
            reasoning_is_extra=True,
        ),
        Provider(
            "groq",
            "https://api.groq.com/openai/v1",
            "GROQ_API_KEY",
            console="https://console.groq.com",
            max_tokens=COMPLETION_LIMIT,
        ),
        Provider(
            "together", "https://api.together.xyz/v1", "TOGETHER_API_KEY", console="https://api.together.ai/settings"
        ),
        Provider(
            "ollama",
            "http://127.0.0.1:11434/v1",
            local=True,
            start="OLLAMA_CONTEXT_LENGTH=32768 ollama serve",
        ),
        Provider("lmstudio", "http://127.0.0.1:1234/v1", local=True, start="lms server start"),
        Provider(
            "vllm",
            "http://127.0.0.1:8000/v1",
            local=True,
            start="vllm serve MODEL",
            reasoning="template",
        ),
        Provider(
            "llamacpp",
            "http://127.0.0.1:8080/v1",
            local=True,
            start="llama-server -m FILE",
            reasoning="template",
        ),
    )
}


def provider_named(name: str) -> Provider:
    """The provider of that name; an unknown one speaks plain OpenAI format. `llama.cpp` is `llamacpp`."""
    return PROVIDERS.get(name.replace(".", "")) or Provider(name)


class ModelReference(NamedTuple):
    """A model by name; an empty `model` is the provider's usual one."""

    provider: str
    model: str


class Key(NamedTuple):
    """A key: the id of its auth profile, itself, and the setting or environment variable that it comes from."""

    profile_id: str
    secret: str
    source: str


@dataclass(frozen=True, slots=True)
class ProviderAccess:
    """A provider as it is configured. `local` in `provider` says whether it runs on this machine."""

    provider: Provider
    settings: ProviderSettings
    base_url: str
    keys: Sequence[Key]

    @property
    def address(self) -> str:
        """The address without secrets, to show."""
        return without_secrets(self.base_url)

    @property
    def keys_setting(self) -> str:
        """The setting that holds its keys."""
        return f"providers.{self.provider.name}.auth_profiles"

    def missing(self) -> str:
        """The step that is missing before it can be asked; empty if none is."""
        if self.keys or not self.provider.key_variable or self.settings.base_url:
            return ""
        return f"set {self.provider.key_variable}, or {self.keys_setting} in denizen.toml"


def parse_model(text: str) -> ModelReference:
    """`provider:model`, or `provider` alone for its default model. Raises ConfigError without a provider."""
    provider, _, model = text.strip().partition(":")
    if not provider.strip():
        raise ConfigError(f"{text!r} isn't a model: write provider:model, like anthropic:claude-sonnet-5-5")
    return ModelReference(provider.strip().lower(), model.strip())


def provider_access(name: str, config: Config, environ: Mapping[str, str]) -> ProviderAccess:
    """How to reach a provider; an unknown one has no `base_url`.

    A known provider keeps its prices at a base_url on this machine: what listens there may be a proxy.
    """
    provider = provider_named(name)
    settings = config.providers.get(name) or config.providers.get(provider.name) or ProviderSettings()
    base_url = settings.base_url or provider.base_url
    host = urlsplit(base_url).hostname or ""
    local = provider.local or (provider.name not in {*PROVIDERS, "bedrock"} and is_local_host(host))
    provider = replace(provider, api=chosen_api(provider, settings), local=local)
    azure = (".azure.com", ".azure-api.net", ".azure.us", ".azure.cn")  # OpenAI's own models
    if provider.api in {"chat", "responses"} and (name.startswith("azure") or host.endswith(azure)):
        provider = replace(provider, max_tokens=COMPLETION_LIMIT, json_schema="always", id_chars=40)
    elif settings.base_url:  # a proxy wants its own ids back, however long
        provider = replace(provider, id_chars=0)
    source = f"providers.{provider.name}.auth_profiles"
    keys = [Key(each.id, each.api_key, source) for each in settings.auth_profiles if each.api_key]
    secret = environ.get(provider.key_variable, "") if provider.key_variable else ""
    if secret.strip() and not settings.auth_profiles:
        keys = [Key("environment", secret, provider.key_variable)]
    return ProviderAccess(provider, settings, base_url, keys)


def chosen_api(provider: Provider, settings: ModelSettings) -> Api:
    """The wire format that the settings choose, else the provider's."""
    return "chat" if settings.api == "openai" else settings.api or provider.api


@functools.lru_cache(64)
def is_local_host(host: str) -> bool:
    """Whether a host is this machine by its name or address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def without_secrets(base_url: str) -> str:
    """The address for people: without a password, and without what follows `?`, which may be a key."""
    return re.sub("[^/@]*@", "", base_url.partition("?")[0], count=1)
