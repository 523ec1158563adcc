"""Regular expressions that are compiled when they are first used."""

import re
from typing import Any, AnyStr, cast


def pattern(expression: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` makes of the expression, for constants of modules: most starts use few of them."""
    return cast("re.Pattern[AnyStr]", _Pattern(expression, flags))


class _Pattern:
    def __init__(self, expression: str | bytes, flags: int) -> None:
        self._given = (expression, flags)

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(*self._given), name)
        setattr(self, name, value)
        return value
