"""One player works while two others talk to it all the time: whatever is lost or mixed up is counted."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.worlds.moo.djangomoo import DjangoMoo

from denizen.worlds.moo.attribution import OutputTiming
from denizen.worlds.moo.connection import MooConnection, connected
from denizen.worlds.moo.quoting import quoted
from denizen.worlds.moo.server_text import CommandOutput, ServerLine

PATIENT = OutputTiming(timeout=300, late=120, settle=1, proof=10, text=120)
"""For a machine that does other things meanwhile."""


@dataclass
class Tally:
    """What became of the commands, and of what the others said."""

    wrong: list[CommandOutput] = field(default_factory=list)
    """Outputs that aren't what their commands give."""
    said: int = 0
    lost: list[ServerLine] = field(default_factory=list)
    """Lines that didn't arrive as they were said, once and with their talker.

    Those of one talker may change places: the server writes them so. Its shell takes messages in two places; the one
    gathers them for up to 0.2 s, and the other, after each command of the listener, writes at once what came since.
    """
    seconds: list[float] = field(default_factory=list)
    """Of each command."""


async def work_while_others_talk(server: DjangoMoo, home: Path, commands: int, timing: OutputTiming = PATIENT) -> Tally:
    """Mason gives so many commands, and with each of them foreman or tinker says something."""
    async with AsyncExitStack() as stack:
        users = ("mason", "foreman", "tinker")
        players = [await stack.enter_async_context(connected(server.address(user), home, timing)) for user in users]
        mason, *others = players
        tally, turns, quiet = Tally(), asyncio.Semaphore(0), asyncio.Event()
        talks = [asyncio.create_task(_talk(each, "mason", turns, quiet, tally)) for each in others]
        for command, lines in _exercise(commands):
            turns.release()
            begun = time.monotonic()
            output = await mason.request(command)
            tally.seconds.append(time.monotonic() - begun)
            if output != CommandOutput(command, lines):
                tally.wrong.append(output)
        quiet.set()
        for _ in others:
            turns.release()
        said = await asyncio.gather(*talks)
        heard = await _said_to(mason, [line for lines in said for line in lines])
        for lines in map(Counter, said):
            [talker] = {line.talker for line in lines}
            own = Counter(line for line in heard if line.talker == talker)
            tally.said += lines.total()
            tally.lost += [*(lines - own).elements(), *(own - lines).elements()]
        return tally


def _exercise(commands: int) -> Iterator[tuple[str, Sequence[str]]]:
    """Commands that print or tell, and what they give."""
    for number in range(commands):
        each = [
            (f"say this {number}", [f"You: this {number}"]),
            (f"emote laughs {number}", [f"Mason laughs {number}"]),
            ("go nowhere", ["Go where?"]),
            ("xyzzy", ["Huh? I don't understand that command."]),
            (f"page mason with {number}", ["Your message has been sent."]),
            ("inventory", ["You are carrying:", "Mason's flashlight"]),
        ]
        yield each[5 if number % 10 == 5 else number % 5]


async def _talk(
    speaker: MooConnection, listener: str, turns: asyncio.Semaphore, quiet: asyncio.Event, tally: Tally
) -> list[ServerLine]:
    """Talk in all ways, a line in each turn, until it is to be quiet; what the listener must have heard."""
    said, name = list[ServerLine](), speaker.name
    while await turns.acquire() and not quiet.is_set():
        text = f"{len(said)} of {name}, said to all"
        ways = (
            (f"say {quoted(text)}", ServerLine(f"{name}: {text}", "say", name)),
            (f"emote nods {text}", ServerLine(f"{name} nods {text}", "emote", name)),
            (f"whisper {quoted(text)} to {listener}", ServerLine(f"{name} whispers to you: {text}", "whisper", name)),
            (f"page {listener} with {quoted(text)}", ServerLine(f'{name} pages, "{text}"', "page", name)),
        )
        command, line = ways[len(said) % len(ways)]
        output = await speaker.request(command)
        if len(output.lines) != 1 or output.problem:
            tally.wrong.append(output)
        said.append(line)
    return said


async def _said_to(connection: MooConnection, said: Sequence[ServerLine]) -> list[ServerLine]:
    """As many lines of these talkers as they said, or those that come in time."""
    talkers, heard = {line.talker for line in said}, list[ServerLine]()
    with suppress(TimeoutError):
        async with asyncio.timeout(60):
            async for line in connection.lines:
                heard += [line] if line.talker in talkers else []
                if len(heard) == len(said):
                    break
    return heard
