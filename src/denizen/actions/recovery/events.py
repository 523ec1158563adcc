"""Where something may begin that isn't just words."""

import re
from typing import Final

from denizen.actions.recovery.forms import BARE_LINES, OPENERS
from denizen.actions.recovery.vocabulary import (
    ANSWERS,
    FINAL,
    FRAMES,
    INDENT,
    LABEL,
    NAME,
    OBJECT,
    OPENS,
    OTHERS,
    QUOTES,
    THOUGHTS,
)

_EVENTS: Final = {
    "think": "|".join(map(re.escape, THOUGHTS)),
    "thought": "|".join(map(re.escape, [*THOUGHTS.values(), FINAL])),
    "other": OTHERS,
    "element": QUOTES,
    "fence": rf"^{INDENT}(?P<label>{LABEL}\s{{0,9}})?(?P<ticks>`{{3,}}|~{{3,}})",
    "line": BARE_LINES,
    "block": f"^{INDENT}>",
    "code": r"`+",
    "unmarked": OPENERS,
    "mark": OPENS,
    "answer": ANSWERS,
    "frame": FRAMES,
    "object": OBJECT,
    "function": rf"^[ \t]{{0,3}}\[?{NAME}\(",
}
EVENT: Final = re.compile("|".join(f"(?P<{name}>{event})" for name, event in _EVENTS.items()), re.MULTILINE)
"""The next event; the group that matched last is its name."""
