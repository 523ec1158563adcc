"""Advice about a provider's failure: the end of the sentence that reports it."""

import difflib
from collections.abc import Sequence
from http import HTTPStatus
from math import ceil

from denizen.errors import ModelError
from denizen.models.catalogue import known_models
from denizen.models.failure_words import advice_for, says_no_such_model, setting_in
from denizen.models.profiles import AuthProfile
from denizen.models.providers import PROVIDERS, provider_named
from denizen.ports import KnownModel

_URLS_WITHOUT_VERSION = {"anthropic", "bedrock"}
"""Providers whose `base_url` doesn't end in /v1."""


def with_advice(error: ModelError, profile: AuthProfile, refused: Sequence[str], *, alone: bool) -> str:
    """A failure in its own words, and what can be done about it.

    `refused` says of each key that was refused where it comes from; `alone`: no other model is configured to go on.
    """
    model = profile.candidate.model
    local = isinstance(model, KnownModel) and model.local
    text = error.message.removeprefix(f"{profile.name}: ")
    clauses: list[str] = []
    if error.retry_after:
        clauses.append(f"it asks to wait {_span(profile.rest() or error.retry_after)}")
    provider = profile.name.partition(":")[0]
    if advice := advice_for(error.status, text, words_only=True):
        clauses.append(advice.format(provider=provider))
    elif says_no_such_model(error.status, text):
        clauses.append(_another_model(profile.name, local=local))
    elif advice := _by_kind(error, provider, refused, local=local):
        clauses.append(advice)
    if alone and not local and error.kind in {"rate_limit", "billing", "quota", "timeout"}:
        clauses.append("a model in fallback_models would go on by itself")
    if clauses and error.message.endswith("?"):
        return f"{error.message} {clauses[0][:1].upper()}{'; '.join(clauses)[1:]}"
    return "; ".join([error.message.rstrip("."), *clauses]) if clauses else error.message


def _by_kind(error: ModelError, provider: str, refused: Sequence[str], *, local: bool) -> str:
    setting = f"providers.{provider}.base_url"
    match error.kind:
        case "auth":
            does = "may do that" if error.status == HTTPStatus.FORBIDDEN else "works"
            count = len(refused)
            what = (
                f"set a key that {does}" if count < 2 else f"none of the {count} keys that were tried works, set others"
            )
            where = " or ".join(dict.fromkeys(filter(None, refused)))
            return f"{what} in {where}" if where else what
        case "billing" | "quota":
            console = provider_named(provider).console
            return f"check the plan and credit of this key{console and f' at {console}'}, or take another model"
        case "context_overflow":
            less = "begin a new session, attach less, or take a model that sees more"
            hosted = provider in PROVIDERS and not local
            return less if hosted else f"{less}; set providers.{provider}.context_window to what this one sees"
        case "rate_limit":
            return "" if error.retry_after else "ask again in a minute"
        case "timeout" if error.status:
            return advice_for(error.status, "") or ("see the server's log" if local else "ask again later")
        case "timeout" if local and error.message.endswith("(connection refused)"):
            start = provider_named(provider).start
            return f"start it{start and f' (`{start}`)'}, or set {setting} to its address"
        case "timeout" if local:
            return f"check that the server runs, and its log; {setting} sets its address"
        case "timeout":
            where = "AWS_REGION" if provider == "bedrock" else setting
            address = "" if provider in PROVIDERS else f", and at {where}"
            return f"ask again; if that doesn't help, check the network{address}"
        case "unknown":
            pass
    if 300 <= error.status < 400:
        return f"set {setting} to its target: redirects aren't followed"
    if error.status in {404, 405}:
        return f"check {setting}{'' if provider in _URLS_WITHOUT_VERSION else ': most end in /v1'}"
    if advice := advice_for(error.status, ""):
        return advice.format(provider=provider)
    if option := setting_in(error.message):
        return f"change agent.{option} in denizen.toml"
    return "asking the same again won't help: begin a new session, or take another model" if error.status else ""


def _another_model(name: str, *, local: bool) -> str:
    provider, _, model = name.partition(":")
    if local:
        return f"available: `denizen models {provider}`"
    known, listed = [one.id for one in known_models(provider)], f"all: `denizen models {provider}`"
    if not known:
        return f"a model is named as its provider does: {provider}:NAME"
    if model in known:
        return f"the name is right, so this key may not use it; others: `denizen models {provider}`"
    near = ", ".join(f"{provider}:{each}" for each in difflib.get_close_matches(model, known, 3, 0.6))
    return f"the nearest known: {near}; {listed}" if near else listed


def _span(seconds: float) -> str:
    """A time as a person says it."""
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds > 2 * length:
            return f"{ceil(seconds / length)} {unit}"
    return f"{ceil(seconds)} s"
