"""What `denizen doctor` says of keys, model servers and models."""

from collections.abc import Iterator, Mapping, Sequence

from denizen.cli.chosen import chosen_by
from denizen.cli.finding import Finding, State
from denizen.clock import SystemClock
from denizen.config.load import Loaded
from denizen.errors import ConfigError
from denizen.models import open_model
from denizen.models.http import CONNECT, PATIENCE, SILENCE
from denizen.models.local import served_models, somebody_listens
from denizen.models.providers import PROVIDERS
from denizen.models.reach import parse_model, reach

_LANGUAGE_MODEL = (
    "It is rules, not a language model, and answers little. For one, set a key like ANTHROPIC_API_KEY in the "
    "environment or in .env in the home (`denizen models` names others), or start a server like ollama here."
)

_TIMEOUTS = (
    f"{CONNECT:g} s for a connection, {SILENCE:g} s for the first and every further byte of an answer "
    f"({PATIENCE:g} s where it comes whole); a server that sends none is not asked again"
)

_ANY = {"llamacpp"}
"""Servers that answer to every model's name."""


def model_findings(loaded: Loaded) -> Iterator[Finding]:
    """Keys, servers on this machine, the model in use and those that go on for it."""
    config, environ = loaded.config, loaded.environ
    ways = [reach(name, config, environ) for name in dict.fromkeys((*config.providers, *PROVIDERS))]
    keys = [f"{way.provider.name} ({way.keys[0].source})" for way in ways if way.keys]
    yield Finding("fine", "keys", ", ".join(keys) or "none found in denizen.toml, the environment or .env in the home")
    here = {way.provider.name: way.base_url for way in ways if way.provider.local}
    served = {url: served_models(url) for url in here.values()}
    servers = [f"{name} at {url}" for name, url in here.items() if served[url]]
    yield Finding("fine", "local servers", ", ".join(servers) or f"none of {', '.join(here)} answers")
    try:
        name = open_model(config, environ=environ, clock=SystemClock()).name
    except ConfigError as error:
        yield Finding("broken", "model", str(error), "Or name another one: `denizen models` shows which can be used.")
        return
    yield _in_use(name, loaded, served)
    for other in config.fallback_models:
        yield _local_trouble("fallback", other, loaded, served) or Finding("fine", "fallback", other)
    yield Finding("fine", "time-outs", _TIMEOUTS)


def _in_use(name: str, loaded: Loaded, served: Mapping[str, Sequence[str]]) -> Finding:
    found = f"{name} ({chosen_by(loaded, name)})"
    if name == "offline":
        return Finding("improvable", "model", found, _LANGUAGE_MODEL)
    return _local_trouble("model", name, loaded, served) or Finding("fine", "model", found)


def _local_trouble(subject: str, name: str, loaded: Loaded, served: Mapping[str, Sequence[str]]) -> Finding | None:
    """Why a server on this machine can't be asked for the model; None: it can, or isn't on this machine."""
    provider, model = parse_model(name)
    way = reach(provider, loaded.config, loaded.environ)
    if not way.provider.local:
        return None
    models = served.get(way.base_url, ())
    if not models and somebody_listens(way.base_url):
        told = f"{name}: the server at {way.address} doesn't say what it has."
        return Finding("improvable", subject, told, "It may want a key first: `denizen ask` tells whether it answers.")
    if not models:
        state: State = "improvable" if loaded.config.fallback_models else "broken"
        told = f"{name}: no server answers at {way.address}."
        return Finding(state, subject, told, f"Start it, or set providers.{provider}.base_url to where it listens.")
    if way.provider.name in _ANY or not model or {model, f"{model}:latest"} & {*models}:
        return None
    told = f"{name}: the server at {way.address} doesn't have it."
    return Finding("improvable", subject, told, f"Get it there, or name one that it has: {', '.join(models[:5])}.")
