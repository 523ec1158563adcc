"""From the configuration to a model that can be asked."""

import difflib
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from denizen.clock import Clock
from denizen.config.settings import Config, ModelSettings, Prices, ProviderSettings
from denizen.errors import ConfigError
from denizen.messages import Usage
from denizen.models import catalogue
from denizen.models.failover import Failover
from denizen.models.limits import LEARNT, Learnt, ModelLimits
from denizen.models.local import served_models, served_window
from denizen.models.profiles import Candidate
from denizen.models.providers import PROVIDERS
from denizen.models.reach import Key, Reach, parse_model, reach
from denizen.ports import KnownModel, Limits, Model

if TYPE_CHECKING:
    from denizen.models.http import Http

USUAL_MODELS: Final[Mapping[str, str]] = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-5-mini",
    "openrouter": "anthropic/claude-sonnet-5.5",
    "gemini": "gemini-flash-latest",
    "mistral": "mistral-medium-latest",
    "deepseek": "deepseek-flash",
    "xai": "grok-4.7",
    "groq": "openai/gpt-oss-120b",
    "together": "zai-org/GLM-5.3",
}
"""Who thinks where only the provider is known, in the order in which keys are looked for; all of them call tools."""

MakeModel = Callable[[str, ProviderSettings, Mapping[str, str], Clock], Model]
"""What an entry point of the group `denizen.models` names: model id, settings, environment and clock make a model."""


def open_model(config: Config, *, environ: Mapping[str, str], clock: Clock) -> KnownModel:
    """The configured model with its fall-backs; with none configured the first that is there.

    That is one whose key is in the configuration or the environment, else a server on this machine, else `offline`.
    Nothing is sent to a provider before the first request. Raises ConfigError for an unknown provider or a missing key.
    """
    first = config.model or first_there(config, environ)
    opener = _Opener(config, environ, clock)
    candidates = [one for name in (first, *config.fallback_models) for one in opener.candidates(name)]
    return Failover(candidates, clock, max_retries=config.agent.max_retries)


def first_there(config: Config, environ: Mapping[str, str]) -> str:
    """The model that is taken when none is configured, as `provider:model`."""
    for name, model in USUAL_MODELS.items():
        if reach(name, config, environ).keys:
            return f"{name}:{model}"
    for name in (*config.providers, *PROVIDERS):
        way = reach(name, config, environ)
        if way.provider.local and (served := served_models(way.base_url)):
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
        if name == "offline":
            from denizen.models.offline import OfflineModel

            yield Candidate("offline", OfflineModel())
        elif name == "bedrock":
            yield from self._bedrock(model)
        elif (way := reach(name, self._config, self._environ)).base_url:
            yield from self._wired(way, model or _usual_model(way))
        else:
            client = self._plugged(_plugin(name, self._config), model, way.settings)
            yield Candidate(f"{name}:{model}", client, settings=model_settings(self._config, way, model))

    def _wired(self, way: Reach, model: str) -> Iterator[Candidate]:
        """A model behind HTTP."""
        if missing := way.missing():
            raise ConfigError(f"There is no key for {way.provider.name}: {missing} (keys: {way.provider.console})")
        settings = model_settings(self._config, way, model)
        for key in way.keys or [Key("default", "", f"providers.{way.provider.name}.auth_profiles")]:
            limits = _limits(way, model, key, settings)
            yield Candidate(
                f"{way.provider.name}:{model}",
                self._client(way, model, key, limits),
                key.profile_id,
                key.source,
                _pricing(way.provider.name, model, self._clock, settings.prices, local=way.provider.local),
                limits,
                (way.base_url, key.secret),
                settings,
            )

    def _client(self, way: Reach, model: str, key: Key, limits: ModelLimits) -> Model:
        from denizen.models.http import Http

        self._http = self._http or Http(proxy=self._config.proxy, environ=self._environ)
        if way.provider.api == "anthropic":
            from denizen.models.anthropic import AnthropicModel as Client
        else:
            from denizen.models.openai import OpenAIModel as Client
        return Client(
            model,
            way.provider,
            api_key=key.secret,
            base_url=way.base_url,
            headers=way.settings.headers,
            profile_id=key.profile_id,
            limits=limits,
            http=self._http,
            clock=self._clock,
        )

    def _plugged(self, plugin: EntryPoint, model: str, settings: ProviderSettings) -> Model:
        """A model of another package. Raises ConfigError where that fails."""
        try:
            make: MakeModel = plugin.load()
            return make(model, settings, self._environ, self._clock)
        except ConfigError:
            raise
        except Exception as broken:  # the boundary to other packages: whatever they raise, the user must act
            package = plugin.dist.name if plugin.dist else plugin.value
            raise ConfigError(
                f"the models {plugin.name!r} of {package} can't be loaded: {broken}; update or remove it"
            ) from broken

    def _bedrock(self, model: str) -> Iterator[Candidate]:
        from denizen.models.bedrock import BedrockModel

        if not model:
            raise _nameless("bedrock", "its id, or that of an inference profile; `denizen models bedrock` lists some")
        way = reach("bedrock", self._config, self._environ)
        settings = model_settings(self._config, way, model)
        for key in way.keys or [Key("default", "", "AWS_BEARER_TOKEN_BEDROCK or the AWS credentials")]:
            client = BedrockModel(
                model,
                environ=self._environ,
                api_key=key.secret,
                base_url=way.base_url,
                headers=way.settings.headers,
                profile_id=key.profile_id,
                limits=(limits := _limits(way, model, key, settings)),
                clock=self._clock,
            )
            cost = _pricing("bedrock", model, self._clock, settings.prices, local=False)
            yield Candidate(
                client.name, client, key.profile_id, key.source, cost, limits, (way.base_url, key.secret), settings
            )


def _usual_model(way: Reach) -> str:
    """The model of a provider named alone. Raises ConfigError where there is none."""
    name = way.provider.name
    if usual := USUAL_MODELS.get(name):
        return usual
    if served := served_models(way.base_url) if way.provider.local else []:
        return served[0]
    start = f" (`{way.provider.start}`)" if way.provider.start else ""
    told = f"no server at {way.address} tells of one; is it running{start}?" if way.provider.local else ""
    raise _nameless(name, told or "it has no usual one")


def _nameless(provider: str, why: str) -> ConfigError:
    return ConfigError(f"Name a model of {provider} ({provider}:MODEL): {why}")


def model_settings(config: Config, way: Reach, model: str) -> ModelSettings:
    """What the user set for a model: under its own name, else under its provider's."""
    own = config.models.get(f"{way.provider.name}:{model}", ModelSettings())
    names = ModelSettings.__struct_fields__
    default = ModelSettings()
    chosen = {name: own if getattr(own, name) != getattr(default, name) else way.settings for name in names}
    settings = ModelSettings(**{name: getattr(chosen[name], name) for name in names})
    return replace(settings, extra_body={**way.settings.extra_body, **own.extra_body})


def _limits(way: Reach, model: str, key: Key, settings: ModelSettings) -> ModelLimits:
    """Those of a model; servers are asked that are the user's own, not the providers that the catalogue knows."""
    name, api = way.provider.name, way.provider.api
    own = api == "openai" and (way.provider.local or bool(way.settings.base_url))
    return ModelLimits(
        model,
        settings.context_window,
        Limits if way.provider.local else lambda: catalogue.limits(name, model),
        (lambda: served_window(way.base_url, model, name, key.secret)) if own else None,
        LEARNT.setdefault((way.base_url, f"{name}:{model}"), Learnt()),
    )


def _pricing(
    provider: str, model: str, clock: Clock, prices: Prices, *, local: bool
) -> Callable[[Usage], float | None]:
    if prices != Prices():
        return lambda usage: catalogue.cost_at(prices, usage)
    if local:
        return lambda _: 0.0
    return lambda usage: catalogue.cost(provider, model, usage, clock.now())


def _plugin(name: str, config: Config) -> EntryPoint:
    """What another package makes the provider's models with. Raises ConfigError where none knows the provider."""
    plugins = entry_points(group="denizen.models")
    if name in plugins.names:
        return plugins[name]
    known = sorted({*PROVIDERS, "bedrock", "offline", *config.providers, *plugins.names} - {name})
    near = difflib.get_close_matches(name, known, 1, 0.5)
    raise ConfigError(
        f'No provider is called "{name}"; '
        + (f'the nearest is "{near[0]}". ' if near else f"there are {', '.join(known)}. ")
        + f"A model is named provider:model, and any server can be a provider by its base_url in [providers.{name}]."
    )
