"""From the configuration to a model that can be asked."""

import dataclasses
import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from denizen.config.plugins import entry_points, load_entry_point
from denizen.config.settings import Config, ModelSettings, Prices, ProviderSettings
from denizen.errors import ConfigError
from denizen.messages import Usage
from denizen.models import catalogue
from denizen.models.catalogue import known_models
from denizen.models.failover import Failover
from denizen.models.local import served_models, served_window
from denizen.models.profiles import LEARNED_LIMITS, PROFILE_REST, Candidate, LearnedLimits, ModelLimits
from denizen.models.providers import PROVIDERS, Key, ProviderAccess, chosen_api, parse_model, provider_access
from denizen.ports import KnownModel, Limits, Model
from denizen.runtime.clock import BackOff, Clock

if TYPE_CHECKING:
    from denizen.models.http import Http
    from denizen.models.wire import WireModel

DEFAULT_MODELS: Final[Mapping[str, str]] = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-5-mini",
    "openrouter": "anthropic/claude-sonnet-5.5",
    "google": "gemini-flash-latest",
    "gemini": "gemini-flash-latest",
    "mistral": "mistral-medium-latest",
    "deepseek": "deepseek-flash",
    "xai": "grok-4.7",
    "groq": "openai/gpt-oss-120b",
    "together": "zai-org/GLM-5.3",
}
"""The default model of each provider, in the order in which keys are looked for; all of them call tools."""

_CREDENTIALS: Final = {
    "bedrock": "AWS_BEARER_TOKEN_BEDROCK or the AWS credentials",
    "vertex": "Google's application default credentials",
}
"""Sources of credentials of providers without a key of their own."""

MakeModel = Callable[[str, ProviderSettings, Mapping[str, str], Clock], Model]
"""The type of an entry point in the group `denizen.models`: model id, settings, environment, clock → model."""


def open_model(
    config: Config, *, environ: Mapping[str, str], clock: Clock, cooldown: BackOff = PROFILE_REST
) -> KnownModel:
    """The configured model with its fall-backs; with none configured the first that is there.

    That is one whose key is in the configuration or the environment, else a server on this machine, else `offline`.
    Nothing is sent to a provider before the first request. `cooldown`: how long an auth profile rests after a failure.
    Raises ConfigError for an unknown provider or a missing key.
    """
    first = config.model or first_available(config, environ)
    opener = _Opener(config, environ, clock)
    candidates = [one for name in (first, *config.fallback_models) for one in opener.candidates(name)]
    return Failover(candidates, clock, max_retries=config.agent.max_retries, cooldown=cooldown)


async def list_models(
    name: str, config: Config, *, environ: Mapping[str, str], clock: Clock
) -> Sequence[catalogue.PricedModel]:
    """The models that a provider lists now. Raises ModelError if it can't be asked, or lists none."""
    access = provider_access(name, config, environ)
    key = next(iter(access.keys), Key("default", "", access.keys_setting))
    settings = model_settings(config, access, "")
    access = with_api(access, "", settings)
    client = _Opener(config, environ, clock).client(access, "", key, ModelLimits(), settings)
    try:
        return await client.served()
    finally:
        await client.close()


def first_available(config: Config, environ: Mapping[str, str]) -> str:
    """The model that is taken when none is configured, as `provider:model`."""
    for name, model in DEFAULT_MODELS.items():
        if provider_access(name, config, environ).keys:
            return f"{name}:{model}"
    for name in (*config.providers, *PROVIDERS):
        access = provider_access(name, config, environ)
        if access.provider.local and (served := served_models(access.base_url)):
            return f"{name}:{served[0]}"
    return "offline"


class _Opener:
    """Makes the candidates of one configuration; they share their connections."""

    def __init__(self, config: Config, environ: Mapping[str, str], clock: Clock) -> None:
        self._config = config
        self._environ = environ
        self._clock = clock
        self._http: Http | None = None

    def candidates(self, text: str) -> Iterator[Candidate]:
        """A model, with each of its keys. Raises ConfigError."""
        name, model = parse_model(text)
        access = provider_access(name, self._config, self._environ)
        provider = access.provider.name
        if name == "offline":
            from denizen.models.offline import OfflineModel

            yield Candidate("offline", OfflineModel())
            return
        if not access.base_url and name != "bedrock":
            client = self._from_plugin(name, model, access.settings)
            yield Candidate(f"{name}:{model}", client, settings=model_settings(self._config, access, model))
            return
        if missing := access.missing():
            raise ConfigError(f"{provider} has no key: {missing} (keys: {access.provider.console})")
        model = model or _default_model(access)
        settings = model_settings(self._config, access, model)
        access = with_api(access, model, settings)
        cost = _pricing(provider, model, self._clock, settings, local=access.provider.local)
        source = _CREDENTIALS.get(name, access.keys_setting)
        for key in access.keys or [Key("default", "", source)]:
            limits = _limits(access, model, key, settings)
            client = self.client(access, model, key, limits, settings)
            account = (access.base_url, key.secret)
            yield Candidate(client.name, client, key.profile_id, key.source, cost, limits, account, settings)

    def client(
        self, access: ProviderAccess, model: str, key: Key, limits: ModelLimits, settings: ModelSettings
    ) -> "WireModel":
        """A model reached with a key. Raises ConfigError."""
        options: dict[str, Any] = {
            "api_key": key.secret,
            "base_url": access.base_url,
            "headers": access.settings.headers,
            "profile_id": key.profile_id,
            "limits": limits,
            "clock": self._clock,
            "settings": settings,
        }
        if access.provider.name == "bedrock":
            from denizen.models.bedrock import BedrockModel

            return BedrockModel(model, environ=self._environ, **options)
        from denizen.models.http import Http

        self._http = self._http or Http(proxy=self._config.proxy, environ=self._environ)
        if access.provider.name == "vertex":
            from denizen.models.gemini_vertex import VertexModel

            own = access.settings
            options |= {"base_url": own.base_url, "project": own.project, "location": own.location}
            return VertexModel(model, access.provider, environ=self._environ, http=self._http, **options)
        if access.provider.api == "anthropic":
            from denizen.models.anthropic import AnthropicModel as Client
        elif access.provider.api == "gemini":
            from denizen.models.gemini import GeminiModel as Client
        elif access.provider.api == "responses":
            from denizen.models.responses import ResponsesModel as Client
        else:
            from denizen.models.openai import OpenAIModel as Client
        return Client(model, access.provider, http=self._http, **options)

    def _from_plugin(self, name: str, model: str, settings: ProviderSettings) -> Model:
        """A model of another package. Raises ConfigError if none knows the provider, or that fails."""
        plugins = entry_points("denizen.models")
        if name not in plugins.names:
            known = sorted({*PROVIDERS, "bedrock", "offline", *self._config.providers, *plugins.names} - {name})
            near = [] if model else _nearest_models(name)
            near += difflib.get_close_matches(name, known, 1, 0.5)
            raise ConfigError(
                f'No provider is called "{name}"; '
                + (f'the nearest is "{near[0]}". ' if near else f"available: {', '.join(known)}. ")
                + "A model is named provider:model, and any server can be a provider by its base_url in "
                f"[providers.{name}]."
            )
        plugin = plugins[name]
        make: MakeModel = load_entry_point(plugin, "models")
        try:
            return make(model, settings, self._environ, self._clock)
        except ConfigError:
            raise
        except Exception as broken:  # the boundary to other packages: whatever they raise, the user must act
            package = plugin.dist.name if plugin.dist else plugin.value
            raise ConfigError(
                f"the models {plugin.name!r} of {package} can't be loaded: {broken}; update or remove it"
            ) from broken


def _nearest_models(name: str) -> list[str]:
    """The model of the catalogue that a name without a provider seems to mean, as `provider:model`; or none."""
    by_id = {each.id: f"{provider}:{each.id}" for provider in reversed([*PROVIDERS]) for each in known_models(provider)}
    return [by_id[each] for each in difflib.get_close_matches(name, by_id, 1, 0.8)]


def _default_model(access: ProviderAccess) -> str:
    """The default model of a provider. Raises ConfigError if it has none."""
    name = access.provider.name
    if usual := DEFAULT_MODELS.get(name):
        return usual
    if served := served_models(access.base_url) if access.provider.local else []:
        return served[0]
    why = "it has no usual one"
    if name == "bedrock":
        why = "its id, or that of an inference profile; `denizen models bedrock` lists some"
    elif access.provider.local:
        start = f" (`{access.provider.start}`)" if access.provider.start else ""
        why = f"no server at {access.address} lists one; is it running{start}?"
    raise ConfigError(f"Name a model of {name} ({name}:MODEL): {why}")


def model_settings(config: Config, access: ProviderAccess, model: str) -> ModelSettings:
    """The user's settings for a model: under its own name, otherwise under its provider's."""
    own = config.models.get(f"{access.provider.name}:{model}", ModelSettings())
    names = ModelSettings.__struct_fields__
    default = ModelSettings()
    chosen = {name: own if getattr(own, name) != getattr(default, name) else access.settings for name in names}
    settings = ModelSettings(**{name: getattr(chosen[name], name) for name in names})
    return replace(settings, extra_body={**access.settings.extra_body, **own.extra_body})


def with_api(access: ProviderAccess, model: str, settings: ModelSettings) -> ProviderAccess:
    """The provider as this model of it is asked: in the format that was set for it, else in the one that it wants."""
    api = chosen_api(access.provider, settings)
    if not settings.api and access.provider.name == "openai":
        at_openai = (urlsplit(access.base_url).hostname or "").endswith("api.openai.com")
        api = "responses" if catalogue.wants_responses(model, at_openai=at_openai) else "chat"
    base_url = access.base_url
    if api == "chat" and not access.settings.base_url:
        base_url = access.provider.chat_url or base_url
    return dataclasses.replace(access, provider=dataclasses.replace(access.provider, api=api), base_url=base_url)


def _limits(access: ProviderAccess, model: str, key: Key, settings: ModelSettings) -> ModelLimits:
    """Those of a model; servers are asked that are the user's own, not the providers that the catalogue knows."""
    name, api = access.provider.name, access.provider.api
    own = api in {"chat", "responses"} and (access.provider.local or bool(access.settings.base_url))
    return ModelLimits(
        model,
        settings.context_window,
        Limits if access.provider.local else lambda: catalogue.limits(name, model, settings.betas),
        (lambda: served_window(access.base_url, model, name, key.secret)) if own else None,
        LEARNED_LIMITS.setdefault((access.base_url, f"{name}:{model}"), LearnedLimits()),
    )


def _pricing(
    provider: str, model: str, clock: Clock, settings: ModelSettings, *, local: bool
) -> Callable[[Usage], float | None]:
    if settings.prices != Prices():
        return lambda usage: catalogue.cost_at(settings.prices, usage)
    if local:
        return lambda _: 0.0
    for_an_hour = settings.cache_life == "1h"
    return lambda usage: catalogue.cost(provider, model, usage, clock.now(), for_an_hour=for_an_hour)
