"""What models cost and how much they see: the tables of genai-prices, read when they are first asked for.

Reading them takes about 0.2 s, so nothing here is called at import; what was looked up is kept.
"""

import functools
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from denizen.config.settings import Prices
from denizen.messages import Usage
from denizen.ports import Limits

if TYPE_CHECKING:
    from decimal import Decimal

    from genai_prices.types import ModelInfo, ModelPrice, StartDateConstraint, TieredPrices, TimeOfDateConstraint


class PricedModel(NamedTuple):
    """A line of the catalogue: tokens that a model sees (0: not known), US dollars per million (None: not known)."""

    id: str
    window: int
    input_price: float | None
    output_price: float | None


def limits(provider: str, model: str) -> Limits:
    """What a model can take; a window of 200,000 tokens where the catalogue doesn't know it."""
    entry = _entry(provider, model)
    return Limits(entry.window if entry and entry.window else Limits().window, longest_answer(model))


def longest_answer(model: str) -> int:
    """Tokens that a model can answer, where that is less than anybody asks for: genai-prices doesn't say."""
    return 4096 if _SHORT_ANSWERS.search(model) else Limits().max_output


def cost(provider: str, model: str, usage: Usage, at: datetime) -> float | None:
    """US dollars of one call made `at` a time; None where the price isn't known, or nobody counted the tokens.

    Tokens written to a cache are priced as living shortly (Anthropic: 5 minutes), the only life that we ask for.
    """
    entry = _entry(provider, model)
    if entry is None or not entry.periods or (usage.input is None and usage.output is None):
        return None
    return entry.price(at).of(usage)


def cost_at(prices: Prices, usage: Usage) -> float | None:
    """The same, at prices of the user's."""
    if usage.input is None and usage.output is None:
        return None
    sent = prices.input or 0.0
    read, written = (sent if each is None else each for each in (prices.cache_read, prices.cache_write))
    rates = _Rates(sent / 1e6, (prices.output or 0.0) / 1e6, read / 1e6, written / 1e6, 0.0)
    return _Price([], [rates]).of(usage)


_NO_CHAT: Final = re.compile(
    r"embed|rerank|moderat|guard|safety|image|\bocr\b|computer-use"
    r"|whisper|transcri|\btts\b|speech|audio|voice|realtime|\blive\b|orpheus|lyria"
    r"|^(ada|babbage|curie|davinci|text-davinci)\b|gpt-3.5-turbo-instruct"  # these complete a text
    r"|(^|[./])ft[:-]|:batch$",
    re.IGNORECASE,
)
"""Names of models that don't answer in a chat, and of what isn't a model's whole name."""

_ELSEWHERE: Final = {
    "openai": re.compile(r"-pro$|codex|deep-research"),  # its Responses only
    "gemini": re.compile(r"^(?!gemini|gemma)"),
    "bedrock": re.compile(r"^(?!.*anthropic\.)"),
}
"""Names of a provider's models that aren't served in the format in which we ask it."""


def known_models(provider: str) -> Iterator[PricedModel]:
    """The models of a provider that chat, at the prices of short prompts; none where the catalogue doesn't know it."""
    from genai_prices import data_snapshot

    found = data_snapshot.find_provider_by_id(data_snapshot.get_snapshot().providers, provider)
    elsewhere = _ELSEWHERE.get(provider)
    for info in found.models if found else ():
        if _NO_CHAT.search(info.id) or (elsewhere and elsewhere.search(info.id)):
            continue
        entry = _read(info)
        rates = entry.periods[0][1].rates[0] if entry.periods else None
        yield PricedModel(
            info.id, entry.window, rates.input * 1e6 if rates else None, rates.output * 1e6 if rates else None
        )


_SHORT_ANSWERS: Final = re.compile(
    r"claude-3-(opus|sonnet|haiku)|gpt-3\.5-turbo|gpt-4-(turbo|1106|0125)|gpt-4o-2024-05"
)


class _Rates(NamedTuple):
    """US dollars: per token of each kind, and per call."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    call: float


@dataclass(frozen=True, slots=True)
class _Price:
    """A price worked out once: `rates[0]`, and `rates[n]` for prompts of more than `starts[n - 1]` tokens."""

    starts: list[int]
    rates: list[_Rates]

    def of(self, usage: Usage) -> float:
        sent, read, written = usage.input or 0, usage.cache_read or 0, usage.cache_write or 0
        rates = self.rates[bisect_left(self.starts, sent + read + written)]
        tokens = sent * rates.input + read * rates.cache_read + written * rates.cache_write
        return tokens + (usage.output or 0) * rates.output + rates.call


@dataclass(frozen=True, slots=True)
class _Entry:
    """A model: its window (0: not known), its prices and when they hold (None: always); the last that does wins."""

    window: int
    periods: "list[tuple[StartDateConstraint | TimeOfDateConstraint | None, _Price]]"

    def price(self, at: datetime) -> _Price:
        """What it costs at a time."""
        for when, price in reversed(self.periods):
            if when is None or when.active(at):
                return price
        return self.periods[0][1]


@functools.cache
def _entry(provider: str, model: str) -> _Entry | None:
    from genai_prices import data_snapshot

    try:
        _, info = data_snapshot.get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return None
    return _read(info)


def _read(info: "ModelInfo") -> _Entry:
    periods = (
        [(p.constraint, p.prices) for p in info.prices] if isinstance(info.prices, list) else [(None, info.prices)]
    )
    return _Entry(info.context_window or 0, [(when, _price(price)) for when, price in periods if _by_tokens(price)])


def _by_tokens(price: "ModelPrice") -> bool:
    """Whether we can tell what a call costs: nothing at all, or so much for its tokens."""
    return not any(vars(price).values()) or price.input_mtok is not None or price.output_mtok is not None


def _price(price: "ModelPrice") -> _Price:
    from genai_prices.types import TieredPrices

    tiers = [tier for value in vars(price).values() if isinstance(value, TieredPrices) for tier in value.tiers]
    starts = sorted({tier.start for tier in tiers})
    return _Price(starts, [_rates(price, sent) for sent in (0, *(start + 1 for start in starts))])


def _rates(price: "ModelPrice", sent: int) -> _Rates:
    """The rates of a prompt of `sent` tokens. Cached tokens without a price of their own cost what others cost."""
    fresh = _at(price.input_mtok, sent)
    read = fresh if price.cache_read_mtok is None else _at(price.cache_read_mtok, sent)
    written = fresh if price.cache_write_mtok is None else _at(price.cache_write_mtok, sent)
    return _Rates(
        fresh / 1e6,
        _at(price.output_mtok, sent) / 1e6,
        read / 1e6,
        written / 1e6,
        _at(price.requests_kcount, sent) / 1e3,
    )


def _at(price: "Decimal | TieredPrices | None", sent: int) -> float:
    from genai_prices.types import TieredPrices

    if isinstance(price, TieredPrices):
        price = next((tier.price for tier in reversed(price.tiers) if sent > tier.start), price.base)
    return float(price or 0)
