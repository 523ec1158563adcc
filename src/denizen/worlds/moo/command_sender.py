"""Commands on their way to the server: not too fast, and not the same one over and over."""

import re
from collections import deque
from collections.abc import AsyncIterable
from typing import Protocol

from denizen.runtime.clock import Clock
from denizen.worlds.moo.server_text import CommandOutput, Room, ServerLine

RECENT_COMMANDS = 8
"""Commands that are looked at for repetition."""
MAX_REPEATS = 3
"""The number of times that one of them is too often."""

_MOVES = re.compile(
    r"(?i)(?:go|walk)\b|[nsewud]$|[ns][ew]$|(?:north|south)(?:east|west)?$|(?:east|west|up|down|out|home)$|@?teleport\b"
)
_ERROR = re.compile(
    r"[A-Za-z]*Error:|Traceback|There is no |I don't understand|You can't|That doesn't|Huh\?|There is already an exit"
    r"|An error occurred|<\||Go where\?|Usage:|When you say,|More than one object defines|That alias"
    r"|The verb \"|Unmatched quote|Specify a direction|The name '"
    r"|I don't (?:see|know) |Couldn't find |Permission denied|Teleport failed|You are muted\.|You don't have permission"
    r"|No (?:topic|object named|player named|verb) '|The aether (?:has no answer|cannot) "
    r"|[^()]{1,60} \(#\d+\) is not a room|#\d+ \([^()]{1,60}\) cannot be moved"
)
_TELEPORT = re.compile(r'(?i)@?teleport\s+"?(?P<to>[^"]+?)"?\s*$')


class WorldConnection(Protocol):
    """A connection to a world, as an agent sees it."""

    @property
    def name(self) -> str:
        """The agent's name there; empty if the server didn't send it."""

    @property
    def room(self) -> Room | None:
        """The agent's room, if the server sent it."""

    @property
    def lines(self) -> AsyncIterable[ServerLine]:
        """The lines that no command asked for, until the connection is over."""

    @property
    def names_talkers(self) -> bool:
        """Whether the server names the talker of all that others say."""

    @property
    def is_lost(self) -> bool:
        """Whether the connection is over."""

    async def request(self, command: str) -> CommandOutput:
        """Send one command, and give its output once it is whole, or has a `problem`."""


class CommandSender:
    """Sends commands, at most `rate` a second, to whatever `world` there is."""

    def __init__(self, clock: Clock, rate: float) -> None:
        self.world: WorldConnection | None = None
        self._clock = clock
        self._interval = 1 / rate
        self._next_at = 0.0
        self._last: deque[str] = deque(maxlen=RECENT_COMMANDS)

    @property
    def is_connected(self) -> bool:
        """Whether there is a world that can be reached."""
        return self.world is not None and not self.world.is_lost

    @property
    def room(self) -> Room | None:
        """The agent's room, if it is known."""
        return self.world.room if self.world else None

    @property
    def names_talkers(self) -> bool:
        """Whether a line without a talker wasn't said by anybody."""
        return self.world is not None and self.world.names_talkers

    async def send(self, command: str) -> CommandOutput:
        """The command's output, once it was its turn; that of a teleport to where the agent is says so, unsent."""
        if self.world is None or self.world.is_lost:
            return CommandOutput(command, problem="not sent: the connection is lost")
        if here := already_there(command, self.world.room):
            return CommandOutput(command, [f"You are in {here.name} (#{here.num}) already; the command was not sent."])
        wait = self._next_at - self._clock.monotonic()
        self._next_at = max(self._next_at, self._clock.monotonic()) + self._interval
        if wait > 0:
            await self._clock.sleep(wait)
        return await self.world.request(command)

    def repeats(self, command: str) -> bool:
        """Note a command; whether it is among the last ones too often, which then are forgotten."""
        if _MOVES.match(command):
            return False
        self._last.append(command)
        if self._last.count(command) < MAX_REPEATS:
            return False
        self._last.clear()
        return True


def is_error(line: str) -> bool:
    """Whether a line of a command's output says that the command failed."""
    return _ERROR.match(line) is not None


def is_failure(output: CommandOutput) -> bool:
    """Whether a command failed: any line of its output says so, or it is incomplete."""
    return bool(output.problem) or any(map(is_error, output.lines))


def already_there(command: str, room: Room | None) -> Room | None:
    """The room that the agent is in, where the command would teleport there, by its number or name."""
    found = _TELEPORT.match(command)
    return room if found and room and found["to"].lower() in {f"#{room.num}", room.name.lower()} else None
