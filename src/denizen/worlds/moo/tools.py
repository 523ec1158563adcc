"""The tools of a text world: each turns typed arguments into commands, and its actor carries them out.

The table of facts ("BUILDER_TOOLS") says which. A tool here is a function from arguments to commands; its docstring is
what the model reads.
"""

import functools
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, Protocol

from denizen.errors import ToolRefused
from denizen.messages import Text, ToolResult
from denizen.ports import Tool, Traits
from denizen.tools.function import tool
from denizen.worlds.moo.quoting import one_line, quoted

ALWAYS_OFFERED: Final = ("raw", "respond", "done", "todo")
"""The tools that no whitelist takes away."""
NUDGES: Final = (
    "Noted. Nobody in the world hears this.",
    "Nobody hears this, and nothing has happened. Act: call a tool that does something.",
    "You have only talked to yourself, three times. Call a tool that acts now, or done.",
)

_SHORT: Final = {"n": "north", "s": "south", "e": "east", "w": "west", "u": "up", "d": "down"} | {
    each[0] + each[5]: each for each in ("northeast", "northwest", "southeast", "southwest")
}
_DIRECTIONS: Final = tuple(_SHORT.values())
_PLAIN: Final = re.compile(r"#\d+|\$?\w+")
_AGENCY: Final = 'teleport "The Agency"'
_BOARD: Final = '"The Dispatch Board"'
_BOOK: Final = '"The Survey Book"'


class Actor(Protocol):
    """Carries out the commands of tools: now, or when the world is quiet."""

    async def act(self, commands: Sequence[str]) -> ToolResult:
        """Send the commands, in order."""

    async def finish(self, summary: str) -> ToolResult:
        """The work is done, or the result says what is missing."""

    async def keep_todo(self, items: Sequence[str]) -> ToolResult:
        """Keep what is still to be done, in place of the list before."""


def norm_ref(reference: str) -> str:
    """A reference as the server's parser takes it: `22` means `#22`, and names of several words are quoted."""
    reference = one_line(reference)
    if re.fullmatch(r"[1-9]\d*", reference):
        return f"#{reference}"
    if len(reference) > 1 and reference[0] == reference[-1] == '"':
        reference = reference[1:-1]
    if not reference:
        raise ToolRefused("a name or a number is missing")
    return reference if _PLAIN.fullmatch(reference) else quoted(reference)


def _way(direction: str) -> str:
    way = direction.strip().lower()
    if _SHORT.get(way, way) not in _DIRECTIONS:
        raise ToolRefused(f"{direction!r} isn't a direction; available: {', '.join(_DIRECTIONS)}")
    return _SHORT.get(way, way)


# The builder's tools


def dig(direction: str, room_name: str) -> list[str]:
    """Dig a new room in a direction; you stay where you are."""
    return [f"@dig {_way(direction)} to {quoted(room_name)}"]


def burrow(direction: str, room_name: str) -> list[str]:
    """Dig a new room, with a way back, and go there."""
    return [f"@burrow {_way(direction)} to {quoted(room_name)}"]


def tunnel(direction: str, destination: str) -> list[str]:
    """Add an exit from here to a room that exists, by its number."""
    return [f"@tunnel {_way(direction)} to {norm_ref(destination)}"]


def go(direction: str) -> list[str]:
    """Go through an exit."""
    way = _way(direction)
    return [way if way in {"up", "down"} else f"go {way}"]  # to DjangoMOO's parser those two are prepositions


def teleport(destination: str) -> list[str]:
    """Go to a room at once, by number or name."""
    return [f"teleport {norm_ref(destination)}"]


def describe(target: str, text: str) -> list[str]:
    """Set the description of a room (here) or a thing."""
    return [f"@describe {norm_ref(target)} as {quoted(text)}"]


def create_object(name: str, parent: str = "$thing") -> list[str]:
    """Create a thing in this room."""
    return [f"@create {quoted(name)} from {quoted(norm_ref(parent).strip(chr(34)))} in here"]


def write_verb(verb: str, on: str, source: str) -> list[str]:
    """Write the program of a verb on an object, in Python."""
    target = norm_ref(on)
    if not source.lstrip().startswith("#!moo"):
        source = f"#!moo verb {verb} --on {target} --dspec none\n{source}"
    return [f"@edit verb {one_line(verb)} on {target} with {json.dumps(source)}"]


def look(target: str = "") -> list[str]:
    """Look around, or at something."""
    if re.fullmatch(r"\w+ #\d+", target.strip()):
        raise ToolRefused(f"look takes one thing, not {target!r}: give its number alone")
    return [f"look {norm_ref(target)}" if target.strip() else "look"]


def alias(target: str, name: str) -> list[str]:
    """Give a thing another name."""
    return [f"@alias {norm_ref(target)} as {quoted(name)}"]


def obvious(target: str) -> list[str]:
    """Let a thing be listed in its room."""
    return [f"@obvious {norm_ref(target)}"]


def move_object(target: str, destination: str) -> list[str]:
    """Move a thing to a room or into a thing."""
    return [f"@move {norm_ref(target)} to {norm_ref(destination)}"]


def place(
    target: str, preposition: Literal["on", "under", "behind", "before", "beside", "over"], other: str
) -> list[str]:
    """Place a thing on, under, behind, before, beside or over another."""
    return [f"place {norm_ref(target)} {preposition} {norm_ref(other)}"]


def open(target: str) -> list[str]:
    """Open something."""
    return [f"open {norm_ref(target)}"]


def close(target: str) -> list[str]:
    """Close something."""
    return [f"close {norm_ref(target)}"]


def drop(target: str) -> list[str]:
    """Drop something that you carry."""
    return [f"drop {norm_ref(target)}"]


def put(target: str, container: str) -> list[str]:
    """Put a thing into another."""
    return [f"put {norm_ref(target)} in {norm_ref(container)}"]


def take(target: str, source: str = "") -> list[str]:
    """Take a thing, out of another if need be."""
    return [f"take {norm_ref(target)}" + (f" from {norm_ref(source)}" if source.strip() else "")]


def show(target: str = "here") -> list[str]:
    """Show everything that is known of an object."""
    return [f"@show {norm_ref(target)}"]


def survey(target: str = "") -> list[str]:
    """Survey a room: exits and contents with their numbers."""
    return [f"@survey {norm_ref(target)}" if target.strip() else "@survey"]


def exits(target: str = "here") -> list[str]:
    """List the exits of a room."""
    return [f"@exits {norm_ref(target)}"]


def rooms() -> list[str]:
    """List all rooms."""
    return ["@rooms"]


def divine(subject: Literal["location", "child"] = "location", of: str = "") -> list[str]:
    """Divine places (location), or things of a kind (child)."""
    return [f"@divine {subject}" + (f" of {norm_ref(of)}" if of.strip() else "")]


def page(player: str, message: str) -> list[str]:
    """Send a message to a player, wherever they are."""
    return [f"page {norm_ref(player)} with {quoted(message)}"]


def send_report(body: str) -> list[str]:
    """Mail a work report to the foreman."""
    return [f"@send foreman with {quoted('Subject: Work Report' + chr(92) + 'n' + chr(92) + 'n' + body)}"]


def post_board(topic: str, rooms: str) -> list[str]:
    """Post rooms on the dispatch board, under a topic."""
    return [_AGENCY, f"post on {_BOARD} under {norm_ref(topic)} with {quoted(rooms)}"]


def read_board(topic: str) -> list[str]:
    """Read a topic of the dispatch board."""
    return [_AGENCY, f"read {_BOARD} under {norm_ref(topic)}"]


def write_book(topic: str, room: str, entry: str) -> list[str]:
    """Write about a room into the survey book, under a topic."""
    return [_AGENCY, f"write in {_BOOK} under {norm_ref(topic)} with {quoted(f'{norm_ref(room)}: {entry}')}"]


def read_book(topic: str, room: str = "") -> list[str]:
    """Read a topic of the survey book, about one room or all."""
    about = f" from {norm_ref(room)}" if room.strip() else ""
    return [_AGENCY, f"read {_BOOK} under {norm_ref(topic)}{about}"]


def clear_topic(topic: str) -> list[str]:
    """Erase a topic from board and book."""
    return [_AGENCY, *(f"erase {each} under {norm_ref(topic)}" for each in (_BOARD, _BOOK))]


def raw(command: str) -> list[str]:
    """Send any command of the world as you would type it; several go on lines of their own."""
    commands = [line for each in command.splitlines() if (line := one_line(each))]
    if not commands:
        raise ToolRefused("the command is empty")
    return commands


_BUILDER: Final[Sequence[Callable[..., list[str]]]] = (
    *(dig, burrow, tunnel, go, teleport, describe, create_object, write_verb, look, alias, obvious, move_object, place),
    *(open, close, drop, put, take, show, survey, exits, rooms, divine, page, send_report),
    *(post_board, read_board, write_book, read_book, clear_topic, raw),
)
NAMES: Final = (*(each.__name__ for each in _BUILDER), *ALWAYS_OFFERED[1:])
"""The tools that there are."""


def builder_tools(actor: Actor, names: Sequence[str] = ()) -> list[Tool]:
    """The tools of these names, and those that an agent always has; no name at all: every one."""
    talks = 0

    def acting(make: Callable[..., list[str]]) -> Tool:
        @functools.wraps(make)
        async def run(**args: Any) -> ToolResult:
            nonlocal talks
            commands = make(**args)
            talks = 0
            return await actor.act(commands)

        return tool(traits=Traits.UNTRUSTED)(run)

    async def respond(text: str) -> ToolResult:
        """Think aloud when there is nothing to do."""
        nonlocal talks
        talks += 1
        return ToolResult("", "", [Text(NUDGES[min(talks, len(NUDGES)) - 1])], ends_turn=talks == 1)

    async def done(summary: str = "") -> ToolResult:
        """The goal is reached, or your part of the work is done; in a token chain after you have paged the foreman."""
        return await actor.finish(summary)

    async def todo(items: list[str]) -> ToolResult:
        """Keep a list of what is still to be done; it replaces the one before, and you always see it."""
        return await actor.keep_todo(items)

    wanted = {*names, *ALWAYS_OFFERED} if names else {*NAMES}
    made: list[Tool] = [acting(each) for each in _BUILDER if each.__name__ in wanted]
    return [*made, tool(respond), tool(done), tool(todo)]
