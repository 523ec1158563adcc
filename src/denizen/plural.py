"""Numbers of things, as people write them."""


def counted(number: int, what: str) -> str:
    """A number of things: `1 file`, `2,000 files`, `3 matches`, `2 dependencies`."""
    if number == 1:
        return f"1 {what}"
    plural = what[:-1] + "ies" if what.endswith("y") else what + ("es" if what.endswith(("ch", "s")) else "s")
    return f"{number:,} {plural}"
