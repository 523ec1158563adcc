"""The symbols of a file as rows: their lines and signatures, nested, as many as fit."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from denizen.structure import TYPES, Symbol

MAX_ROWS = 150  # shown of one file
MAX_CHARS = 10_000  # in these rows
MAX_SIGNATURE_CHARS = 160  # characters of a signature that are shown
_DETAIL_KINDS = frozenset({"constant", "variable", "field", "variant", "macro"})  # kinds that are left out first
_OUTER_KINDS = TYPES | {"module"}


def skeleton(symbols: Sequence[Symbol], depth: int | None = None) -> tuple[list[str], int]:
    """The rows, and how many symbols they leave out: those deeper than `depth`, and whatever doesn't fit."""
    top = min((symbol.depth for symbol in symbols), default=0)
    levels = max((symbol.depth for symbol in symbols), default=0) - top + 1
    levels = min(levels, depth or levels)
    rows: list[str] = []
    fitting = 0
    # everything, then without details, then with fewer and fewer levels
    for deepest, hidden in [(levels, frozenset()), *((level, _DETAIL_KINDS) for level in range(levels, 0, -1))]:
        if deepest < levels and depth is not None:
            break
        rows = _rows(symbols, [each.depth - top < deepest and each.kind not in hidden for each in symbols], top)
        chars = [*accumulate(len(row) + 1 for row in rows)]
        fitting = min(bisect_right(chars, MAX_CHARS), MAX_ROWS)
        if fitting == len(rows):
            break
    return rows[:fitting], len(symbols) - fitting


def skeletons(files: Mapping[str, Sequence[Symbol]], depth: int | None = None) -> tuple[list[str], int]:
    """The rows of several files, and how many symbols they leave out; only types if their members don't fit."""
    rows: list[str] = []
    for types_alone in (False, True) if depth is None else (depth == 1,):
        rows = []
        for file, symbols in files.items():
            kept = [symbol for symbol in symbols if not types_alone or symbol.kind in TYPES]
            rows += [file, *(f"  {row}" for row in skeleton(kept, None if types_alone else depth)[0])]
        if len(rows) <= MAX_ROWS:
            break
    shown = sum(row.startswith("  ") for row in rows[:MAX_ROWS])
    return rows[:MAX_ROWS], sum(map(len, files.values())) - shown


def types_only(symbols: Sequence[Symbol]) -> list[Symbol]:
    """The types with their members, and the modules that hold types; not what is defined inside functions."""
    kept: list[Symbol] = []
    outer: list[Symbol] = []
    for symbol in symbols:
        while outer and not _is_in(symbol, outer[-1]):
            outer.pop()
        is_member = bool(outer) and outer[-1].kind in TYPES
        if all(each.kind in _OUTER_KINDS for each in outer) and (is_member or symbol.kind in _OUTER_KINDS):
            kept.append(symbol)
        outer.append(symbol)
    types = [symbol for symbol in kept if symbol.kind in TYPES]
    return [each for each in kept if each.kind != "module" or any(_is_in(symbol, each) for symbol in types)]


def facts(symbol: Symbol) -> dict[str, Any]:
    """A symbol as data for a filter, without its byte positions."""
    bytes_ = {"start", "attributed", "declared", "end"}
    return {name: value for name, value in symbol._asdict().items() if name not in bytes_}


def line_range(symbol: Symbol) -> str:
    """Its lines: `12`, `12-40`."""
    return str(symbol.first) if symbol.first == symbol.last else f"{symbol.first}-{symbol.last}"


def short(signature: str) -> str:
    """A signature as it is shown."""
    return signature if len(signature) <= MAX_SIGNATURE_CHARS else signature[: MAX_SIGNATURE_CHARS - 1] + "…"


def _rows(symbols: Sequence[Symbol], kept: Sequence[bool], top: int) -> list[str]:
    """A row for each kept symbol; those around others that are left out say how many."""
    width = max((len(line_range(symbol)) for symbol, keep in zip(symbols, kept, strict=True) if keep), default=0)
    rows: list[str] = []
    left_out: list[int] = []
    outer: list[tuple[Symbol, int]] = []
    for symbol, keep in zip(symbols, kept, strict=True):
        while outer and not _is_in(symbol, outer[-1][0]):
            outer.pop()
        if keep:
            outer.append((symbol, len(rows)))
            rows.append(f"{line_range(symbol):<{width}}  {'  ' * (symbol.depth - top)}{short(symbol.signature)}")
            left_out.append(0)
        elif outer:
            left_out[outer[-1][1]] += 1
    return [f"{row}  (+{count})" if count else row for row, count in zip(rows, left_out, strict=True)]


def _is_in(inner: Symbol, outer: Symbol) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end and outer.depth < inner.depth
