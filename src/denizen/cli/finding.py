"""What `denizen doctor` finds."""

from typing import Literal, NamedTuple

State = Literal["fine", "improvable", "broken"]


class Finding(NamedTuple):
    """What was looked at, how it is, what was found, and what to do about it."""

    state: State
    subject: str
    found: str
    advice: str = ""
