"""What runs inside a contender's process: it plays the scene when told to and measures itself.

Commands come as JSON lines on standard input, one reply each on standard output. Only the standard library is used,
since this runs in every contender's own environment.
"""

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TextIO, TypeVar

from benchmarks.scene import ANSWER, QUESTION, Weather, WrongAnswer

Turn = Callable[[str], Awaitable[str]]  # a session that is open: a message in, the reply out
Figures = Mapping[str, object]
Command = Callable[..., Awaitable[Figures]]


@dataclass(frozen=True, slots=True)
class Stage:
    """What a contender is given to play on."""

    base_url: str  # up to and including `/v1`
    home: Path  # an empty directory for whatever it keeps
    weather: Weather


class Contender(Protocol):
    """An engine whose agent was built once."""

    stores: Sequence[str]  # the last is where it keeps a session that goes on

    async def open(self, key: str, store: str) -> Turn:
        """A new session named `key`, kept in one of `stores`."""
        ...


WARM_UP = 30  # turns before the few that are measured

T = TypeVar("T")
C = TypeVar("C", bound=Contender)


@dataclass(slots=True)
class _Session:
    """A session that goes on, and how many turns it has behind it."""

    turn: Turn
    behind: int


@dataclass(slots=True)
class Player:
    """Plays turns, checks that each was real, and says what they cost."""

    contender: Contender
    weather: Weather
    _opened: int = 0
    _long: dict[tuple[str, int], _Session] = field(default_factory=dict)

    async def _open(self, store: str) -> Turn:
        self._opened += 1
        return await self.contender.open(f"bench-{self._opened}", store)

    async def _play(self, turn: Turn) -> None:
        before = self.weather.calls
        reply = await turn(QUESTION)
        if ANSWER not in reply or self.weather.calls == before:
            raise WrongAnswer(f"{self.weather.calls - before} tool calls, then {reply!r}")

    async def turns(self, count: int, store: str) -> Figures:
        """CPU and wall milliseconds of a session's first and second turn: means of `count` sessions, opened before."""
        sessions = [await self._open(store) for _ in range(count)]
        first, _ = await self._round(sessions)
        second, wall = await self._round(sessions)
        return {"first_ms": first, "cpu_ms": second, "wall_ms": wall}

    async def _round(self, sessions: Sequence[Turn]) -> tuple[float, float]:
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        for turn in sessions:
            await self._play(turn)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        return cpu * 1e3 / len(sessions), wall * 1e3 / len(sessions)

    async def session(self, count: int, store: str) -> Figures:
        """CPU milliseconds of each of `count` turns of one session."""
        gc.collect()
        turn = await self._open(store)
        return {"cpu_ms": [await self._cost(turn) for _ in range(count)]}

    async def history(self, turns: int, count: int, store: str) -> Figures:
        """CPU milliseconds of each of `count` turns of a session with `turns` behind it, or up to half as many more.

        Another session warms the processor up, which has done others' work since the last measurement, and one turn
        the session's own data.
        """
        session = self._long.get((store, turns))
        if session is None or session.behind > turns * 1.5:
            session = self._long[store, turns] = await self._long_session(store, turns)
        gc.collect()
        other = await self._open(store)
        for _ in range(WARM_UP):
            await self._play(other)
        await self._play(session.turn)
        session.behind += 1 + count
        return {"cpu_ms": [await self._cost(session.turn) for _ in range(count)]}

    async def _long_session(self, store: str, turns: int) -> _Session:
        turn = await self._open(store)
        for _ in range(turns):
            await self._play(turn)
        return _Session(turn, turns)

    async def _cost(self, turn: Turn) -> float:
        cpu = time.process_time()
        await self._play(turn)
        return (time.process_time() - cpu) * 1e3

    async def crowd(self, sessions: int, count: int, store: str) -> Figures:
        """`sessions` sessions at once, `count` turns each: turns per second, and what each session holds in memory."""
        gc.collect()
        before = resident()
        turns = [await self._open(store) for _ in range(sessions)]
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(self._play_on(turn, count) for turn in turns))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        gc.collect()
        return {
            "turns_per_second": sessions * count / wall,
            "cpu_ms": cpu * 1e3 / (sessions * count),
            "kb_per_session": (resident() - before) / 1024 / sessions,
        }

    async def _play_on(self, turn: Turn, count: int) -> None:
        for _ in range(count):
            await self._play(turn)


def resident() -> int:
    """Bytes of this process in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def own_stdout() -> TextIO:
    """Keep standard output for the replies: whatever an engine prints goes to standard error."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return replies


def main(
    build: Callable[[Stage], Awaitable[C]],
    extra: Callable[[C], Mapping[str, Command]] = lambda _: {},
) -> None:
    """Build the contender from the command line (`BASE_URL HOME`) and obey until standard input closes."""
    replies = own_stdout()
    stage = Stage(sys.argv[1], Path(sys.argv[2]), Weather())
    with asyncio.Runner() as runner:
        contender = runner.run(_awaited(build(stage)))
        player = Player(contender, stage.weather)
        commands: dict[str, Command] = {
            "turns": player.turns,
            "session": player.session,
            "history": player.history,
            "crowd": player.crowd,
            **extra(contender),
        }
        obey(commands, contender.stores, runner, replies)


def obey(commands: Mapping[str, Command], stores: Sequence[str], runner: asyncio.Runner, replies: TextIO) -> None:
    """Say where sessions can be kept, and carry commands out until standard input closes."""
    print(json.dumps({"stores": list(stores), "rss_mb": resident() / 2**20}), file=replies)
    for line in sys.stdin:
        command = json.loads(line)
        print(json.dumps(runner.run(_awaited(commands[command.pop("do")](**command)))), file=replies)


async def _awaited(work: Awaitable[T]) -> T:
    return await work
