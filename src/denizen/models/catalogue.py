"""Prices and context windows of models: the tables of genai-prices, read when first asked for.

Reading them takes about 0.2 s, so nothing here is called at import; what was looked up is kept.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from denizen.config.pattern import pattern
from denizen.config.settings import Prices
from denizen.messages import Usage
from denizen.ports import Limits

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice


class PricedModel(NamedTuple):
    """A line of the catalogue: tokens that a model sees (0: not known), US dollars per million (None: not known)."""

    id: str
    window: int
    input_price: float | None
    output_price: float | None


_NO_CHAT: Final = pattern(
    r"embed|rerank|moderat|guard|safety|image|\bocr\b|computer-use"
    r"|whisper|transcri|\btts\b|speech|audio|voice|realtime|\blive\b|orpheus|lyria"
    r"|^(ada|babbage|curie|davinci|text-davinci)\b|gpt-3.5-turbo-instruct"  # these complete a text
    r"|(^|[./])ft[:-]|:batch$",
    re.IGNORECASE,
)
"""Names of models that don't answer in a chat, and of what isn't a model's whole name."""

_OTHER_FORMATS: Final = {
    "openai": pattern("deep-research"),  # these want a search of their own
    "google": pattern(r"^(?!gemini|gemma)"),
    "gemini": pattern(r"^(?!gemini|gemma)"),
    "vertex": pattern(r"^(?!gemini)"),
    "bedrock": pattern(r"^(?!.*anthropic\.)"),
}
"""Names of a provider's models that don't answer in the format in which we ask it."""

_RESPONSES_ONLY: Final = pattern(r"^(o\d|gpt-).*-pro\b|codex|deep-research")
_THINKS: Final = pattern(r"^(o\d|gpt-[5-9](?!.*(chat|search)))")
"""OpenAI's models whose thoughts only Responses keeps between calls."""

_SHORT_ANSWERS: Final = pattern(r"claude-3-(opus|sonnet|haiku)|gpt-3\.5-turbo|gpt-4-(turbo|1106|0125)|gpt-4o-2024-05")


def limits(provider: str, model: str, betas: Sequence[str] = ()) -> Limits:
    """A model's limits; a window of 200,000 tokens if the catalogue doesn't know it, a million with the beta."""
    info = _find(provider, model)
    window = 1_000_000 if any(beta.startswith("context-1m") for beta in betas) else 0
    return Limits(max(window, (info.context_window if info else 0) or Limits().window), max_answer_tokens(model))


def max_answer_tokens(model: str) -> int:
    """Tokens that a model can answer, where that is less than anybody asks for: genai-prices doesn't say."""
    return 4096 if _SHORT_ANSWERS.search(model) else Limits().max_output


def wants_responses(model: str, *, at_openai: bool) -> bool:
    """Whether a model of OpenAI's is best asked by its Responses API.

    That is if nothing else serves it, and at OpenAI itself where it thinks: servers that stand in for OpenAI speak
    Chat Completions more often.
    """
    return bool(_RESPONSES_ONLY.search(model) or (at_openai and _THINKS.search(model)))


def cost(provider: str, model: str, usage: Usage, at: datetime, *, for_an_hour: bool = False) -> float | None:
    """US dollars of one call made `at` a time; None if the price or the token counts aren't known.

    Tokens written to a cache are priced as the answer says how long they live there; where it doesn't say, as
    living there shortly (Anthropic: 5 minutes), or `for_an_hour`.
    """
    info = _find(provider, model)
    if info is None or not info.prices or (usage.input is None and usage.output is None):
        return None
    return _dollars(info.get_prices(at), usage, for_an_hour=for_an_hour)


def cost_at(prices: Prices, usage: Usage) -> float | None:
    """The same, at the user's prices."""
    from genai_prices.types import ModelPrice

    if usage.input is None and usage.output is None:
        return None
    given = {f"{name}_mtok": getattr(prices, name) for name in prices.__struct_fields__}
    return _dollars(
        ModelPrice(**{name: Decimal(str(price)) for name, price in given.items() if price is not None}), usage
    )


def known_models(provider: str) -> Iterator[PricedModel]:
    """The models of a provider that chat, at the prices of short prompts; none if the catalogue doesn't know it."""
    from genai_prices import data_snapshot

    found = data_snapshot.find_provider_by_id(data_snapshot.get_snapshot().providers, provider)
    for info in found.models if found else ():
        if answers_chats(provider, info.id):
            yield _priced(info.id, info)


def known_model(provider: str, model: str) -> PricedModel:
    """A model at the prices of short prompts; without window and prices where the catalogue doesn't know it."""
    info = _find(provider, model)
    return _priced(model, info) if info else PricedModel(model, 0, None, None)


def answers_chats(provider: str, model: str) -> bool:
    """Whether a model of that name answers in a chat, and in a format in which we ask its provider."""
    elsewhere = _OTHER_FORMATS.get(provider)
    return not (_NO_CHAT.search(model) or (elsewhere and elsewhere.search(model)))


def _priced(name: str, info: "ModelInfo") -> PricedModel:
    price = info.prices[0].prices if isinstance(info.prices, list) and info.prices else info.prices
    if isinstance(price, list) or not _is_known(price):
        return PricedModel(name, info.context_window or 0, None, None)
    bases: list[Any] = [getattr(each, "base", each) for each in (price.input_mtok, price.output_mtok)]
    return PricedModel(name, info.context_window or 0, *(float(base or 0) for base in bases))


@functools.cache
def _find(provider: str, model: str) -> "ModelInfo | None":
    from genai_prices import data_snapshot

    try:
        return data_snapshot.get_snapshot().find_provider_model(model, None, provider, None)[1]
    except LookupError:
        return None


def _dollars(price: "ModelPrice", usage: Usage, *, for_an_hour: bool = False) -> float | None:
    """Cached tokens without a price of their own cost what others cost."""
    from genai_prices import Usage as PricedUsage

    if not _is_known(price):
        return None
    written = usage.cache_write or 0
    hour = usage.cache_write_1h if usage.cache_write_1h is not None else written * for_an_hour
    counts = PricedUsage(
        input_tokens=usage.sent,
        output_tokens=usage.output or 0,
        cache_read_tokens=usage.cache_read or 0,
        cache_write_tokens=written,
        cache_write_1h_tokens=min(hour, written),
    )
    return float(price.calc_price(counts)["total_price"])


def _is_known(price: "ModelPrice") -> bool:
    """Whether the cost of a call can be computed: the model is free, or priced by its tokens."""
    return not any(vars(price).values()) or price.input_mtok is not None or price.output_mtok is not None
