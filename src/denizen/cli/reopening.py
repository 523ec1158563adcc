"""Where a session stands that a conversation goes on with."""

from collections.abc import Iterator, Sequence

import click

from denizen.cli.conversation import Conversation
from denizen.cli.passing import columns
from denizen.cli.text import cut, one_line
from denizen.engine.resume import question_of, unfinished
from denizen.entries import AnyEntry, AssistantEntry, UserEntry
from denizen.events import Notice, TurnStop
from denizen.messages import Text

LONGEST = 240
"""Cells of what was said last, as it is shown."""


async def reopen(chat: Conversation) -> TurnStop | None:
    """Show what was said last; ask the question that the session waits for. How the turn ended, if one ran."""
    entries = chat.entries
    if not (chat.options.quiet or chat.options.json):
        for line in _last_said(entries):
            click.secho(cut(f"  {line}", min(columns() - 1, LONGEST)), dim=True, err=True)
    if question_of(entries):
        return await chat.go_on()
    if unfinished(entries):
        with chat.host() as host:
            host.emit(Notice("The last turn was left unfinished: /continue goes on with it.", "warning"))
    return None


def _last_said(entries: Sequence[AnyEntry]) -> Iterator[str]:
    """The user's last message and the words that answered it."""
    place = next((i for i in reversed(range(len(entries))) if isinstance(entries[i], UserEntry)), len(entries))
    answer = ""
    for entry in entries[place:]:
        match entry:
            case UserEntry(message=message):
                said = next((part.text for part in message.content if isinstance(part, Text)), "[image]")
                yield f"> {one_line(said)}"
            case AssistantEntry(message=message):
                answer = one_line(message.text) or answer
            case _:
                pass
    if answer:
        yield answer
