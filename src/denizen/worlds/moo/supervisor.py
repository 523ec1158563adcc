"""Agents of a group at work: each is started again when it falls, and none takes the others with it."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from denizen.errors import ConfigError, DenizenError
from denizen.runtime.clock import BackOff, Clock
from denizen.worlds.moo.folder import AgentFolder
from denizen.worlds.moo.group import AgentState, Group
from denizen.worlds.moo.listener import CharacterListener, Facts, Kind, Status, Tally
from denizen.worlds.moo.live import run_until_stopped
from denizen.worlds.moo.token_pages import avatar

RESTARTS = BackOff(5.0, 300.0)
"""The waits before an agent that fell is started again."""
HEALTHY_AFTER_S = 600.0
"""Seconds that an agent must have played for its earlier falls not to count."""
NOT_PLAYING = "It isn't playing: the instruction is dropped."


class Seat:
    """The place of one agent in a running group. It is the agent's listener: shows what it hears, and keeps its state.

    `instruct` hands an operator's instruction over; `settled` is set once the agent has signed in, or fallen.
    """

    def __init__(self, group: Group, folder: AgentFolder, shown: CharacterListener, clock: Clock) -> None:
        self.folder = folder
        self.restarts = group.settings.restarts
        self.settled = asyncio.Event()
        self.state = AgentState()
        self._group, self._shown, self._clock = group, shown, clock
        self._before = Tally()
        self.rest()

    def rest(self) -> None:
        """Nobody plays here now."""
        self.instruct: Callable[[str], None] = lambda _: self.line("system", NOT_PLAYING)
        self._before = self.state.tally

    def change(self, **changes: object) -> None:
        """Keep what is new about the agent."""
        if "life" in changes:
            changes["since"] = self._clock.now().timestamp()
        self.state = msgspec.structs.replace(self.state, **changes)
        try:
            self._group.write_state(self.folder.name, self.state)
        except ConfigError as error:  # the group can go on without
            self.line("system", str(error))

    def line(self, kind: Kind, text: str) -> None:
        """Show it."""
        self._shown.line(kind, text)

    def status(self, status: Status) -> None:
        """Show and keep it."""
        self._shown.status(status)
        if status != "away":
            self.settled.set()
        self.change(doing=status)

    def facts(self, facts: Facts) -> None:
        """Show and keep them, with what the agent's earlier runs have done."""
        facts = msgspec.structs.replace(facts, tally=self._before.plus(facts.tally))
        self._shown.facts(facts)
        self.change(token=facts.token, tally=facts.tally)


Play = Callable[[Seat], Awaitable[None]]
"""Lets an agent play until it is to stop; raises ConfigError where the user must act, other errors where it fell."""


async def supervise(seats: Sequence[Seat], play: Play, clock: Clock, stop: asyncio.Event) -> None:
    """Let all play until they are to stop, or have given up.

    The agent that passes the token begins once its chain has settled, so that its first page reaches them.
    """

    async def begin(seat: Seat) -> None:
        seat.change(life="starting")
        chain = {avatar(user) for user in seat.folder.settings.token_chain}
        workers = [each for each in seats if avatar(each.folder.settings.user) in chain]
        for each in workers if seat not in workers else ():
            await run_until_stopped(stop, each.settled.wait())
        await _keep_playing(seat, play, clock, stop)

    async with asyncio.TaskGroup() as tasks:
        for seat in seats:
            tasks.create_task(begin(seat))


async def _keep_playing(seat: Seat, play: Play, clock: Clock, stop: asyncio.Event) -> None:
    """Start the agent again whenever it falls, as often in a row as the group allows."""
    falls, most = 0, seat.restarts
    while not stop.is_set():
        seat.change(life="playing")
        began = clock.monotonic()
        why, may_restart = await _play_once(seat, play)
        seat.rest()
        seat.settled.set()
        if stop.is_set():
            break
        falls = 1 if clock.monotonic() - began >= HEALTHY_AFTER_S else falls + 1
        if falls > most or not may_restart:
            seat.line("server_error", f"{why} It isn't started again.")
            seat.change(life="gave up", problem=why, token="")
            return
        wait = RESTARTS.after(falls)
        seat.line("server_error", f"{why} Restart {falls} of {most} in {wait:g} s.")
        seat.change(life="fallen", problem=why, token="", restarts=seat.state.restarts + 1)
        await run_until_stopped(stop, clock.sleep(wait))
    seat.change(life="stopped", doing="away", token="")


async def _play_once(seat: Seat, play: Play) -> tuple[str, bool]:
    """Why the agent doesn't play any more, and whether another try may help."""
    try:
        await play(seat)
    except ConfigError as error:
        return str(error), False
    except DenizenError as error:
        return str(error), True
    except Exception as error:  # noqa: BLE001 - whatever it is, the other agents play on
        for line in traceback.format_exception(error):
            seat.line("system", line.rstrip())
        return f"{type(error).__name__}: {error}.", True
    return "It ended.", True
