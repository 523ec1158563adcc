"""The symbols of a file as rows: their lines and signatures, nested, as many as fit."""

from collections.abc import Iterator, Sequence, Set
from typing import Any

from denizen.structure import TYPES, Symbol

MOST_ROWS = 150
MOST_CHARS = 10_000
"""What is shown of one file."""
LONGEST = 160
"""Characters of a signature that are shown."""
_DETAIL = frozenset({"constant", "variable", "field", "variant", "macro"})
"""Kinds that are left out first."""
_BYTES = frozenset({"start", "attributed", "declared", "end"})
_AROUND = TYPES | {"module"}


def skeleton(symbols: Sequence[Symbol], depth: int | None = None) -> tuple[list[str], int]:
    """The rows, and how many symbols they leave out: those deeper than `depth`, and whatever doesn't fit."""
    top = min((symbol.depth for symbol in symbols), default=0)
    levels = max((symbol.depth for symbol in symbols), default=0) - top + 1
    kept: list[Symbol] = []
    rows: list[str] = []
    for deepest, without in _choices(min(levels, depth or levels), shrink=depth is None):
        kept = [symbol for symbol in symbols if symbol.depth - top < deepest and symbol.kind not in without]
        rows = [*_rows(kept, symbols, top)]
        if _fitting(rows) == len(rows):
            break
    shown = _fitting(rows)
    return rows[:shown], len(symbols) - shown


def types_only(symbols: Sequence[Symbol]) -> list[Symbol]:
    """The types with their members, and the modules that they are in; not what is defined inside functions."""
    kept: list[Symbol] = []
    above: list[Symbol] = []
    for symbol in symbols:
        while above and not _is_in(symbol, above[-1]):
            above.pop()
        above.append(symbol)
        outside = [each.kind for each in above[:-1]]
        is_member = bool(outside) and outside[-1] in TYPES
        if _AROUND.issuperset(outside) and (is_member or symbol.kind in _AROUND):
            kept.append(symbol)
    empty = {at for at, symbol in enumerate(kept) if symbol.kind == "module" and not _has_types(kept, at)}
    return [symbol for at, symbol in enumerate(kept) if at not in empty]


def facts(symbol: Symbol) -> dict[str, Any]:
    """A symbol as a filter gets it."""
    return {name: value for name, value in symbol._asdict().items() if name not in _BYTES}


def span(symbol: Symbol) -> str:
    """Its lines: `12`, `12-40`."""
    return str(symbol.first) if symbol.first == symbol.last else f"{symbol.first}-{symbol.last}"


def short(signature: str) -> str:
    """A signature as it is shown."""
    return signature if len(signature) <= LONGEST else signature[: LONGEST - 1] + "…"


def _choices(levels: int, *, shrink: bool) -> Iterator[tuple[int, Set[str]]]:
    """What may be shown, from the most to the least: how many levels, and which kinds not."""
    yield levels, frozenset()
    for deepest in range(levels, 0 if shrink else levels - 1, -1):
        yield deepest, _DETAIL


def _rows(kept: Sequence[Symbol], symbols: Sequence[Symbol], top: int) -> Iterator[str]:
    width = max((len(span(symbol)) for symbol in kept), default=0)
    hidden = _hidden(kept, symbols)
    for at, symbol in enumerate(kept):
        more = f"  (+{hidden[at]})" if hidden[at] else ""
        yield f"{span(symbol):<{width}}  {'  ' * (symbol.depth - top)}{short(symbol.signature)}{more}"


def _hidden(kept: Sequence[Symbol], symbols: Sequence[Symbol]) -> list[int]:
    """How many symbols are left out inside of each that is kept; both are in the order of the text."""
    counts = [0] * len(kept)
    at = -1
    for symbol in symbols:
        if at + 1 < len(kept) and kept[at + 1] is symbol:
            at += 1
        elif (around := next((back for back in range(at, -1, -1) if _is_in(symbol, kept[back])), None)) is not None:
            counts[around] += 1
    return counts


def _fitting(rows: Sequence[str]) -> int:
    """How many of the rows may be shown."""
    chars = 0
    for at, row in enumerate(rows):
        chars += len(row) + 1
        if at == MOST_ROWS or chars > MOST_CHARS:
            return at
    return len(rows)


def _has_types(symbols: Sequence[Symbol], at: int) -> bool:
    inside = (symbol for symbol in symbols[at + 1 :] if _is_in(symbol, symbols[at]))
    return any(symbol.kind in TYPES for symbol in inside)


def _is_in(inner: Symbol, outer: Symbol) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end and outer.depth < inner.depth
