"""Numbers of things and lists of names, as people write them."""

from collections.abc import Sequence


def counted(number: int, what: str) -> str:
    """A number of things: `1 file`, `2,000 files`, `3 matches`, `2 dependencies`."""
    if number == 1:
        return f"1 {what}"
    plural = what[:-1] + "ies" if what.endswith("y") else what + ("es" if what.endswith(("ch", "s")) else "s")
    return f"{number:,} {plural}"


def first_of(names: Sequence[str], most: int) -> str:
    """At most so many of the names: `a, b, c`, `a, b and 7 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
