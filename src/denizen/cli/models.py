"""`denizen models`: the providers and models that can be used here."""

import asyncio
import difflib
from collections.abc import Sequence
from typing import Literal

import click
import msgspec

from denizen.cli.output import print_table, write, write_json
from denizen.config.load import Loaded, load
from denizen.config.plugins import entry_points
from denizen.config.toml import SettingsFile
from denizen.errors import ConfigError, ModelError
from denizen.models.catalogue import PricedModel, known_model, known_models
from denizen.models.providers import PROVIDERS, ProviderAccess, provider_access, provider_named
from denizen.models.readiness import readiness
from denizen.models.resolve import first_available, list_models, model_settings, with_api
from denizen.runtime.clock import SystemClock


class ModelInfo(msgspec.Struct, frozen=True):
    """A model: its window in tokens, US dollars per million tokens (None: not known), and how it is asked."""

    name: str
    window: int | None = None
    input_usd: float | None = None
    output_usd: float | None = None
    format: str = ""


class ProviderInfo(msgspec.Struct, frozen=True):
    """A provider, whether it can be used, and why or why not; `models` of those that can."""

    provider: str
    ready: bool
    why: str
    models: list[ModelInfo] = []
    source: Literal["", "provider", "server", "catalogue"] = ""
    """Whose list that is; `server`: of one on this machine."""
    note: str = ""
    """Why it isn't the provider's own."""


@click.command()
@click.argument("provider", required=False)
@click.argument("model", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: a provider with its models.")
def models(provider: str | None, model: str | None, as_json: bool) -> None:
    """List the providers, and the models of those that can be used: a key is set, or a server here answers.

    With PROVIDER, list its models: as the provider lists them now if a key is set, otherwise as the catalogue does.
    Prices are US dollars per million tokens.

    `denizen models test PROVIDER:MODEL` makes one small call with a tool, and shows what works.
    """
    loaded = load()
    if model is not None:
        if provider != "test":
            raise click.UsageError(f"One provider is listed at a time; to try a model: denizen models test {model}")
        from denizen.cli.model_test import test_model

        test_model(loaded, model, as_json=as_json)
        return
    if provider == "test" and provider not in _names(loaded, None):
        raise click.UsageError("Name the model to try: denizen models test PROVIDER:MODEL")
    found = [_provider(loaded, name, listed=provider is not None) for name in _names(loaded, provider)]
    if as_json:
        write_json(*found)
        return
    if provider is None:
        print_table(
            ("provider", "ready", "why"),
            [(each.provider, "yes" if each.ready else "no", each.why) for each in found],
            elastic="why",
        )
        write("\n")
    rows = [_row(model) for each in found for model in each.models]
    if rows:
        titles = ("model", "window", "in $", "out $", "format")[: None if provider else -1]
        print_table(titles, [row[: len(titles)] for row in rows], right=("window", "in $", "out $"))
    elif found[0].ready:
        name = found[0].provider
        write(f"The models of {name} aren't known here. Use its own names: {name}:NAME\n")
    else:
        write(f"The models of {found[0].provider} aren't known: {found[0].why}.\n")
    if provider and found[0].note:
        write(f"\n{found[0].note}\n")
    name = loaded.config.model or first_available(loaded.config, loaded.environ)
    write(f"\nmodel in use: {name} ({why_in_use(loaded, name)})\n")


def ready_models(loaded: Loaded) -> list[str]:
    """The names of all models that can be used, those of the configuration first."""
    providers = [_provider(loaded, name, listed=False) for name in _names(loaded, None)]
    there = (model.name for provider in providers for model in provider.models)
    return [*loaded.config.fallback_models, *loaded.config.models, *there]


def why_in_use(loaded: Loaded, name: str) -> str:
    """Why the model `name` is the one in use: a line of a file, or what was found here. Raises ConfigError."""
    if loaded.config.model:
        for path in reversed(loaded.sources):
            file = SettingsFile.read(path)
            if "model" in file.data:
                return file.locate(("model",))
        return "the options"
    access = provider_access(name.partition(":")[0], loaded.config, loaded.environ)
    if access.keys:
        return f"none is set; the key is {access.keys[0].source}"
    if access.provider.local:
        return f"none is set; a server answers at {access.address}"
    return "none is set; no key and no local server were found"


def _names(loaded: Loaded, provider: str | None) -> list[str]:
    """The names of all providers, or of the one that is meant."""
    plugins = entry_points("denizen.models").names
    names = [*dict.fromkeys((*loaded.config.providers, *PROVIDERS, "bedrock", *sorted(plugins), "offline"))]
    if provider is None:
        return names
    found = next((name for name in (provider, provider_named(provider).name) if name in names), "")
    if not found:
        near = difflib.get_close_matches(provider, names, 1, 0.5)
        there = f"the nearest is {near[0]!r}" if near else f"available: {', '.join(names)}"
        raise ConfigError(f"No provider is called {provider!r}; {there}.")
    return [found]


def _provider(loaded: Loaded, name: str, *, listed: bool) -> ProviderInfo:
    if name == "offline":
        return ProviderInfo(name, True, "always there: rules, not a language model", [ModelInfo("offline")])
    access = provider_access(name, loaded.config, loaded.environ)
    ready, why, served = readiness(access, loaded.environ)
    if not (ready or listed):
        return ProviderInfo(name, ready, why)
    now, note = (), f"From the catalogue: {why}." if listed and not ready else ""
    if listed and ready and access.base_url and not access.provider.local:
        now, note = _served_now(loaded, access)
    window = access.settings.context_window or None
    models = [ModelInfo(f"{name}:{model}", window, 0.0, 0.0, access.provider.api) for model in served]
    if now:
        models += [_info(loaded, access, model, known_model(name, model.id)) for model in now]
    else:
        models += [_info(loaded, access, known, known) for known in known_models(name)]
    source = "server" if served else "provider" if now else "catalogue"
    return ProviderInfo(name, ready, why, models, source, note if models else "")


def _served_now(loaded: Loaded, access: ProviderAccess) -> tuple[Sequence[PricedModel], str]:
    """What the provider lists, or why it doesn't."""
    name = access.provider.name
    try:
        return asyncio.run(list_models(name, loaded.config, environ=loaded.environ, clock=SystemClock())), ""
    except (ModelError, ConfigError) as error:
        return [], f"From the catalogue, because the provider's own list isn't available: {error}"


def _info(loaded: Loaded, access: ProviderAccess, model: PricedModel, known: PricedModel) -> ModelInfo:
    """What we know of a model: by the settings, else by its provider, else by the catalogue."""
    settings = model_settings(loaded.config, access, model.id)
    prices = settings.prices
    return ModelInfo(
        f"{access.provider.name}:{model.id}",
        settings.context_window or model.window or known.window or None,
        _first(prices.input, model.input_price, known.input_price),
        _first(prices.output, model.output_price, known.output_price),
        with_api(access, model.id, settings).provider.api,
    )


def _first(*prices: float | None) -> float | None:
    return next((price for price in prices if price is not None), None)


def _row(model: ModelInfo) -> tuple[str, ...]:
    window = f"{model.window:,}" if model.window else ""
    return model.name, window, _price(model.input_usd), _price(model.output_usd), model.format


def _price(usd: float | None) -> str:
    return "" if usd is None else f"{usd:.2f}"
