"""Memory: facts that outlive a session."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

import msgspec

from denizen.ports.tool import UNTRUSTED, Traits


class Fact(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fact that outlives the session.

    `id` names it (`p12`: of the project, `u3`: of the user; empty: a line of the notes). `weight` (0 to 1) says how
    much it matters, `at` when it was last said, `source` in which session, or in which file. `untrusted`: it was kept
    in sight of text that others wrote.
    """

    text: str
    id: str = ""
    context: str = ""
    weight: float = 0.5
    source: str = ""
    at: datetime | None = None
    untrusted: bool = False

    @property
    def marked(self) -> str:
        """The text, with a mark before it if it is untrusted."""
        return f"{UNTRUSTED} {self.text}" if self.untrusted else self.text


def traits_of_facts(lines: object) -> Traits:
    """The traits of recalled facts, from the lines that the model sees."""
    marked = isinstance(lines, list) and any(str(line).startswith(UNTRUSTED) for line in lines)
    return Traits.PRIVATE | Traits.UNTRUSTED if marked else Traits.PRIVATE


Scope = Literal["project", "user", "today"]
"""Where a fact holds: in this project, or wherever the user works; `today`: it is a line of today's note."""


class Memory(Protocol):
    """Facts that outlive the session."""

    async def remember(
        self,
        text: str,
        *,
        context: str = "",
        weight: float = 0.5,
        scope: Scope = "project",
        source: str = "",
        untrusted: bool = False,
    ) -> str:
        """Keep a fact, once; says where it went; `untrusted` stays with it.

        Raises ToolRefused, or DenizenError when the disk refuses.
        """

    async def recall(self, query: str, limit: int = 10) -> Sequence[Fact]:
        """The facts that fit best, best first; for an empty query the latest. Raises DenizenError."""

    async def forget(self, what: str) -> str:
        """Forget the fact of that id, that text, or the only one that fits; says which. Raises ToolRefused."""
