"""Numbers of things, lists of names, and usage, as people write them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from denizen.messages import AssistantMessage, Usage


def counted(number: int, what: str) -> str:
    """A number of things: `1 file`, `2,000 files`, `3 matches`, `2 dependencies`."""
    if number == 1:
        return f"1 {what}"
    plural = what[:-1] + "ies" if what.endswith("y") else what + ("es" if what.endswith(("ch", "s")) else "s")
    return f"{number:,} {plural}"


def first_of(names: Sequence[str], most: int) -> str:
    """At most so many of the names: `a, b, c`, `a, b and 7 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def usage_parts(usage: "Usage", answers: "Iterable[AssistantMessage]" = ()) -> list[str]:
    """Tokens and cost, as far as they are known; cached tokens are those of all the answers."""
    cached = sum(answer.usage.cache_read or 0 for answer in answers)
    parts: list[str] = []
    if usage.input is not None or usage.output is not None:
        parts.append(f"{usage.input or 0:,} in + {usage.output or 0:,} out")
    if cached := cached or usage.cache_read:
        parts.append(f"{cached:,} cached")
    if usage.cost_usd:
        parts.append(f"${usage.cost_usd:.4f}")
    return parts
