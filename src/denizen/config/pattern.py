"""Regular expressions compiled lazily, on first use."""

import re
from typing import Any, AnyStr, cast


def pattern(expression: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Like `re.compile`, but compiles on first use. For module constants: a run uses few of them."""
    return cast("re.Pattern[AnyStr]", _Pattern(expression, flags))


class _Pattern:
    def __init__(self, expression: str | bytes, flags: int) -> None:
        self._given = (expression, flags)

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(*self._given), name)
        setattr(self, name, value)
        return value
