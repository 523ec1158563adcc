"""Which facts fit best: by their words or their meaning, their weight, and when they were last said."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from denizen.memory.store import Found
from denizen.ports import Fact

HALF_LIFE = 90.0
"""Days after which a fact has lost half of what its freshness adds."""
_FRESHNESS = 0.3
"""The share of a fact's score that its freshness makes."""


def rank(found: Sequence[Found], total: int, alike: Mapping[str, float], now: datetime) -> list[Fact]:
    """The facts, best first; `total` are those that were searched, `alike` how near in meaning some are, by id.

    The score is relevance x (0.5 + weight) x freshness. Relevance is the share of the query's words that a fact has,
    rare words counting more; where meaning is known, the mean of that and of its likeness.
    """
    having = Counter(word for each in found for word in each.words)
    rarity = {word: math.log(1 + (total - count + 0.5) / (count + 0.5)) for word, count in having.items()}
    whole = sum(rarity.values())

    def score(each: Found) -> float:
        relevance = sum(rarity[word] for word in each.words) / whole if whole else 0.0
        if alike:
            relevance = (relevance + max(alike.get(each.fact.id, 0.0), 0.0)) / 2
        return relevance * (0.5 + each.fact.weight) * _freshness(each.fact.at, now)

    return [each.fact for each in sorted(found, key=lambda each: (score(each), _when(each.fact)), reverse=True)]


def _freshness(at: datetime | None, now: datetime) -> float:
    days = max((now - at).total_seconds() / 86_400, 0.0) if at else math.inf
    return 1 - _FRESHNESS + _FRESHNESS * 0.5 ** (days / HALF_LIFE)


def _when(fact: Fact) -> float:
    return fact.at.timestamp() if fact.at else 0.0
