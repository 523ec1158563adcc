"""Questions to the person: how they are shown, and what an answer means."""

import itertools
import json
from collections.abc import Sequence
from typing import Protocol

import click

from denizen.cli.changes import coloured
from denizen.cli.text import visible
from denizen.ports import Answer, Ask, Control, Parked, Steer

CHOICES = "y yes · s yes, for this session · a always · n no · or say what to do instead"


_IN_DIFF = {"old", "new", "content", "patch"}


def described(request: Ask) -> str:
    """The whole call with the question below it; nothing in it can look like something else.

    What an edit would change is a diff, else every argument is shown.
    """
    args = {name: value for name, value in request.args.items() if not request.diff or name not in _IN_DIFF}
    width = max(map(len, args), default=0)
    lines = [f"  {visible(request.tool_name)}"] if request.tool_name else []
    for name, value in args.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        indented = visible(text).replace("\n", f"\n    {' ' * width}  ")
        lines.append(f"    {visible(name):{width}}  {indented}")
    lines += [click.style(f"    {line}", colour) for line, colour in coloured(visible(request.diff))]
    return "\n".join([*lines, click.style(visible(request.question), "yellow")])


def understand(request: Ask, words: str) -> Answer:
    """What typed words mean: yes, no, for how long, or something to tell the model."""
    words = words.strip()
    if not request.tool_name:
        return Answer(request.call_id, allow=words.lower() not in {"", "n", "no"}, text=words)
    match words.lower():
        case "y" | "yes":
            return Answer(request.call_id, allow=True)
        case "s" | "session":
            return Answer(request.call_id, allow=True, scope="session")
        case "a" | "always":
            return Answer(request.call_id, allow=True, scope="always")
        case "" | "n" | "no":
            return Answer(request.call_id, allow=False)
        case _:
            return Answer(request.call_id, allow=False, text=words)


class Asked(Protocol):
    """Where a person reads and types."""

    async def ask(self, question: str, prompt: str) -> str | None:
        """What they answer; None: they leave the question open."""
        ...

    def waiting(self) -> Sequence[str]:
        """What they entered meanwhile, unasked."""
        ...


class Person:
    """Whoever is at the terminal, or nobody.

    `yes` answers everything but quotations, `refuse` answers no; else the question goes to where they can be `asked`,
    and where that is nowhere the turn is parked. What is typed while the agent works is said to it where there is a
    list of `commands`: lines that begin with a slash are put there instead, for later.
    """

    def __init__(
        self,
        asked: Asked | None = None,
        *,
        yes: bool = False,
        refuse: bool = False,
        commands: list[str] | None = None,
    ) -> None:
        self._asked = asked
        self._yes = yes
        self._refuse = refuse
        self._commands = commands

    def said(self) -> Sequence[Control]:
        """What came since the last look."""
        if self._asked is None or self._commands is None:
            return ()
        entered = [*filter(None, map(str.strip, self._asked.waiting()))]
        self._commands += filter(_is_command, entered)
        return [*map(Steer, itertools.filterfalse(_is_command, entered))]

    async def ask(self, request: Ask) -> Answer | Parked:
        """The answer; a slash command parks the turn."""
        if self._yes and not request.quotation:
            return Answer(request.call_id, allow=True, text="" if request.tool_name else "yes")
        if self._refuse or self._yes:
            why = "--yes doesn't cover quotations" if self._yes else "nobody can be asked (--non-interactive)"
            return Answer(request.call_id, allow=False, text=why, unasked=True)
        if self._asked is None:
            return Parked()
        words = await self._asked.ask(described(request), CHOICES if request.tool_name else "your answer")
        if self._commands is not None and words and _is_command(words):
            self._commands.append(words.strip())
            return Parked()
        return Parked() if words is None else understand(request, words)


def _is_command(line: str) -> bool:
    return line.startswith("/")
