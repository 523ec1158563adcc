"""`denizen models`: who can think here."""

import difflib
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from importlib.util import find_spec

import click
import msgspec

from denizen.cli.chosen import chosen_by
from denizen.cli.output import write
from denizen.cli.table import print_table
from denizen.config.extras import how_to_install
from denizen.config.load import Loaded, load
from denizen.errors import ConfigError
from denizen.models.catalogue import known_models
from denizen.models.local import served_models
from denizen.models.providers import PROVIDERS, provider_named
from denizen.models.reach import Reach, reach
from denizen.models.resolve import first_there

_AWS = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK")


class Offered(msgspec.Struct, frozen=True):
    """A model: tokens that it sees, US dollars per million tokens (None: not known)."""

    name: str
    window: int | None = None
    input_usd: float | None = None
    output_usd: float | None = None


class Offer(msgspec.Struct, frozen=True):
    """A provider, whether it can be asked, and what that is known by; `models` of those that can."""

    provider: str
    ready: bool
    why: str
    models: list[Offered] = []


@click.command()
@click.argument("provider", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: a provider with its models.")
def models(provider: str | None, as_json: bool) -> None:
    """The providers, and the models of those that can be asked: a key is there, or a server on this machine answers.

    With PROVIDER, its models, whether it can be asked or not. Prices are US dollars per million tokens.
    """
    loaded = load()
    offers = [_offer(loaded, name, listed=provider is not None) for name in _names(loaded, provider)]
    if as_json:
        write("".join(msgspec.json.encode(offer).decode() + "\n" for offer in offers))
        return
    if provider is None:
        providers = [(offer.provider, "yes" if offer.ready else "no", offer.why) for offer in offers]
        print_table(("provider", "ready", "why"), providers, elastic="why")
        write("\n")
    rows = [_row(model) for offer in offers for model in offer.models]
    if rows:
        print_table(("model", "window", "in $", "out $"), rows, right=("window", "in $", "out $"))
    else:
        write(_unlisted(offers[0]))
    name = loaded.config.model or first_there(loaded.config, loaded.environ)
    write(f"\nmodel in use: {name} ({chosen_by(loaded, name)})\n")


def ready_models(loaded: Loaded) -> list[str]:
    """The names of all models that can be asked, those of the configuration first."""
    offers = [_offer(loaded, name, listed=False) for name in _names(loaded, None)]
    return [
        *loaded.config.fallback_models,
        *loaded.config.models,
        *(model.name for offer in offers for model in offer.models),
    ]


def _names(loaded: Loaded, provider: str | None) -> list[str]:
    plugins = entry_points(group="denizen.models").names
    names = [*dict.fromkeys((*loaded.config.providers, *PROVIDERS, "bedrock", *sorted(plugins), "offline"))]
    if provider is None:
        return names
    found = next((name for name in (provider, provider_named(provider).name) if name in names), "")
    if not found:
        near = difflib.get_close_matches(provider, names, 1, 0.5)
        there = f"the nearest is {near[0]!r}" if near else f"there are {', '.join(names)}"
        raise ConfigError(f"No provider is called {provider!r}; {there}.")
    return [found]


def _unlisted(offer: Offer) -> str:
    """What is said of a provider whose models nobody tells."""
    if offer.ready:
        return f"Which models {offer.provider} has is not known here: name one as it does, {offer.provider}:NAME.\n"
    return f"Which models {offer.provider} has is not known: {offer.why}.\n"


def _offer(loaded: Loaded, name: str, *, listed: bool) -> Offer:
    if name == "offline":
        return Offer(name, True, "always there: rules, not a language model", [Offered("offline")])
    way = reach(name, loaded.config, loaded.environ)
    served = served_models(way.base_url) if way.provider.local else []
    ready, why = _readiness(name, way, served, loaded.environ)
    return Offer(name, ready, why, [*_models(name, way, served)] if ready or listed else [])


def _readiness(name: str, way: Reach, served: list[str], environ: Mapping[str, str]) -> tuple[bool, str]:
    """Whether a provider can be asked, and why."""
    if way.provider.local:
        return bool(served), f"{'a' if served else 'no'} server answers at {way.address}"
    if name == "bedrock" and not way.keys:
        return _bedrock(environ)
    if missing := way.missing():
        return False, missing
    if not way.base_url:
        return True, "an installed package knows it"
    return True, f"key from {way.keys[0].source}" if way.keys else f"no key set, at {way.address}"


def _bedrock(environ: Mapping[str, str]) -> tuple[bool, str]:
    if not find_spec("anthropic"):
        return False, how_to_install("bedrock")
    found = next((name for name in _AWS if environ.get(name)), "")
    return bool(found), f"credentials from {found}" if found else f"set {_AWS[0]}, or another of AWS's variables"


def _models(name: str, way: Reach, served: list[str]) -> Iterator[Offered]:
    for model in served:
        yield Offered(f"{name}:{model}", way.settings.context_window or None, 0.0, 0.0)
    for known in known_models(name):
        yield Offered(f"{name}:{known.id}", known.window or None, known.input_price, known.output_price)


def _row(model: Offered) -> tuple[str, str, str, str]:
    prices = ["" if price is None else f"{price:.2f}" for price in (model.input_usd, model.output_usd)]
    return (model.name, f"{model.window:,}" if model.window else "", prices[0], prices[1])
