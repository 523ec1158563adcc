"""Questions to the person: how they are shown, and what an answer means."""

import json
from collections.abc import Sequence

import click

from denizen.cli.lines import Lines
from denizen.cli.text import visible
from denizen.ports import Answer, Ask, Control, Parked, Steer

CHOICES = "y yes · s yes, for this session · a always · n no · or say what to do instead"


def described(request: Ask) -> str:
    """The question with the whole call: every argument, and nothing in it that could look like something else."""
    width = max(map(len, request.args), default=0)
    lines = [visible(request.question), *([f"  {visible(request.tool_name)}"] if request.tool_name else [])]
    for name, value in request.args.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        indented = visible(text).replace("\n", f"\n    {' ' * width}  ")
        lines.append(f"    {visible(name):{width}}  {indented}")
    return "\n".join(lines)


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


class Person:
    """Whoever is at the terminal, or nobody.

    `yes` answers everything, `refuse` answers no; else the question goes to `lines`, and where there are none the turn
    is parked. What is typed while the agent works is said to it where there is a list of `commands`: lines that begin
    with a slash are put there instead, for later.
    """

    def __init__(
        self,
        lines: Lines | None = None,
        *,
        yes: bool = False,
        refuse: bool = False,
        commands: list[str] | None = None,
    ) -> None:
        self._lines = lines
        self._yes = yes
        self._refuse = refuse
        self._commands = commands
        self._said: list[str] = []

    def said(self) -> Sequence[Control]:
        """What came since the last look."""
        self._hear()
        said = [Steer(text) for text in self._said]
        self._said.clear()
        return said

    async def ask(self, request: Ask) -> Answer | Parked:
        """The answer; what was typed before the question came is none, and a slash command parks the turn."""
        if self._yes:
            return Answer(request.call_id, allow=True, text="" if request.tool_name else "yes")
        if self._refuse:
            return Answer(request.call_id, allow=False, text="nobody can be asked (--non-interactive)", unasked=True)
        if self._lines is None:
            return Parked()
        self._hear()
        self._lines.forget()
        click.secho(f"\n{described(request)}", fg="yellow", err=True)
        click.echo(f"{CHOICES if request.tool_name else 'your answer'}: ", nl=False, err=True)
        words = await self._typed(self._lines)
        if self._commands is not None and words and words.startswith("/"):
            self._commands.append(words.strip())
            return Parked()
        return Parked() if words is None else understand(request, words)

    async def _typed(self, lines: Lines) -> str | None:
        """A line; a prompt that got none is ended, so that what is said next begins a line."""
        words = None
        try:
            words = await lines.next()
        finally:
            if words is None:
                click.echo(err=True)
        return words

    def _hear(self) -> None:
        if self._lines is None or self._commands is None:
            return
        for line in filter(None, map(str.strip, self._lines.waiting())):
            (self._commands if line.startswith("/") else self._said).append(line)
