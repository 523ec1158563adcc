"""What a text means: its messages, or its one message, gone through, and the arguments of its calls converted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from denizen.actions.recovery.channels import Message, messages
from denizen.actions.recovery.convert import Converter
from denizen.actions.recovery.offered import Offered
from denizen.actions.recovery.reading import Pass
from denizen.actions.recovery.source import Exhausted, Source, Wish
from denizen.actions.recovery.values import Unreadable, read_whole


@dataclass(frozen=True, slots=True)
class Meaning:
    """Calls (a tool's name, arguments, and how it is written), words and thoughts, each in their order.

    `broken` says of other calls why they aren't among these.
    """

    calls: list[tuple[str, dict[str, Any], str]]
    words: list[str]
    thoughts: list[str]
    broken: Sequence[str] = ()


def meaning_of(text: str, offered: Offered) -> Meaning:
    """What the text says and asks for."""
    sent = messages(text)
    if not sent:
        return _of_text(text, offered)
    meaning = Meaning([], [], [])
    for message in sent:
        if message.calls:
            meaning.calls.extend(_addressed(message, offered))
        elif message.thinks or (message.own and message.channel == "commentary" and _is_object(message.body, offered)):
            meaning.thoughts.append(message.body)
        elif message.own:
            meaning.words.append(message.body)
    return meaning


def _of_text(text: str, offered: Offered) -> Meaning:
    """Calls without marks are looked for where there are no others: beside those they are words."""
    source = Source(text, offered)
    found = Pass(source)
    found.run()
    if found.doubtful and not found.wishes:
        found = Pass(source, bare=True)
        found.run()
    calls = [_converted(wish, text, offered) for wish in found.wishes]
    return Meaning(calls, found.text, found.thoughts, found.broken)


def _addressed(message: Message, offered: Offered) -> list[tuple[str, dict[str, Any], str]]:
    """The call that a message to a tool is: its body are the arguments, or the call once more in a form of its own."""
    name = offered.known(message.recipient)
    try:
        args = read_whole(message.body, Source(message.body, offered))
    except (Unreadable, Exhausted):
        return _of_text(message.body, offered).calls
    if not name or not isinstance(args, dict):
        return []
    return [_converted(Wish(name, args, message.written), message.body, offered)]


def _is_object(text: str, offered: Offered) -> bool:
    try:
        return isinstance(read_whole(text, Source(text, offered)), dict)
    except (Unreadable, Exhausted):
        return False


def _converted(wish: Wish, text: str, offered: Offered) -> tuple[str, dict[str, Any], str]:
    name = offered.known(wish.name)
    return name, Converter(offered.parameters(name), Source(text, offered)).arguments(wish.args or {}), wish.wording
