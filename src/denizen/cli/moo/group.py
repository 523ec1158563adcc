"""`denizen moo group`: several agents, run and supervised together."""

import asyncio
import dataclasses
import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import datetime
from pathlib import Path

import click
import msgspec

from denizen.cli.moo.apart import play_apart
from denizen.cli.moo.run import PlainLines, brain_of, stop_at_signals, trace
from denizen.cli.output import print_table, say_error, write
from denizen.cli.text import one_line
from denizen.config.home import private_folder
from denizen.config.lock_file import lock
from denizen.errors import DenizenError
from denizen.runtime.clock import SystemClock
from denizen.tui import require_textual
from denizen.worlds.moo.folder import AgentFolder
from denizen.worlds.moo.group import AgentState, Group, open_group
from denizen.worlds.moo.listener import CharacterListener, slow_cycle
from denizen.worlds.moo.live import live
from denizen.worlds.moo.supervisor import Seat, supervise
from denizen.worlds.moo.token_pages import avatar

PATIENCE = 60.0
"""Seconds that `down` waits for a group to end."""

folder_argument = click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="GROUP")


@click.group("group")
def group() -> None:
    """Several agents: the directory GROUP has a group.toml, and the directories of its agents."""


@group.command(short_help="Let the agents of a group play until they are stopped.")
@folder_argument
@click.option("--processes", type=click.Choice(["one", "each"]), help="One for all, or one each; over group.toml.")
@click.option("--model", default="", metavar="PROVIDER:MODEL", help="Which model, in place of the directories'.")
@click.option("--plain", is_flag=True, help="Print lines, also where there is a terminal for the whole screen.")
@click.option("--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="As in `denizen ask`.")
def up(folder: Path, *, processes: str | None, model: str, plain: bool, config: Path | None) -> int:
    """Sign the agents of GROUP in, and let them play until they are stopped.

    An agent that falls is started again, after 5 seconds and then ever longer; the others play on. Ctrl-C, SIGTERM and
    `down` let all leave with @quit. The exit status is 1 if an agent was given up.
    """
    found = open_group(folder)
    if processes:
        found = dataclasses.replace(found, settings=msgspec.structs.replace(found.settings, processes=processes))
    members = found.members(config=config, overrides={"model": model} if model else None)
    plain = plain or not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    if not plain:
        require_textual()
    private_folder(found.shared)
    busy = f"{found.path} runs already (process {{holder}}). Stop it first: denizen moo group down {folder}"
    held = lock(found.lock, busy)
    options = ["--group", str(found.path), *(["--model", model] if model else [])]
    options += ["--config", str(config)] if config else []
    try:
        lost = asyncio.run(_up(found, members, options, plain=plain))
    finally:
        os.close(held)
    for seat in lost:
        say_error(DenizenError(f"{seat.folder.name} was given up: {seat.state.problem}"))
    return 1 if lost else 0


async def _up(found: Group, members: Sequence[AgentFolder], options: Sequence[str], *, plain: bool) -> Sequence[Seat]:
    """Run it; the agents that were given up."""
    clock, stop = SystemClock(), asyncio.Event()
    stop_at_signals(stop)
    seats: list[Seat] = []
    listeners: Sequence[CharacterListener] = [PlainLines(clock, member.name) for member in members]
    screen: AbstractAsyncContextManager[None] = nullcontext()
    if not plain:
        from denizen.tui.agent_view import AgentView
        from denizen.tui.agents_app import AgentsApp

        listeners = views = [
            AgentView(each.name, lambda text, at=at: seats[at].instruct(text), clock, player=avatar(each.settings.user))
            for at, each in enumerate(members)
        ]
        screen = AgentsApp(views).shown(stop.set)
    seats += [Seat(found, member, shown, clock) for member, shown in zip(members, listeners, strict=True)]

    is_apart = found.settings.processes == "each"
    for missing in () if is_apart else trace(members[0].loaded.environ):
        seats[0].line("system", missing)

    async def play(seat: Seat) -> None:
        if is_apart:
            await play_apart(seat, options, stop)
            return
        for notice in seat.folder.notices:
            seat.line("system", one_line(notice))
        async with brain_of(seat.folder, seat) as brain:
            seat.instruct = brain.instruct
            await live(brain, seat.folder, clock, stop)

    async with screen:
        await supervise(seats, play, clock, stop)
    return [seat for seat in seats if seat.state.life == "gave up"]


@group.command(short_help="Stop a group.")
@folder_argument
def down(folder: Path) -> None:
    """Let the agents of GROUP leave with @quit, and wait for that. While they do, another `down` ends them at once."""
    found = open_group(folder)
    runner = found.runner
    if not runner:
        write(f"{found.path} isn't running.\n")
        return
    os.kill(runner, signal.SIGTERM)
    latest = time.monotonic() + PATIENCE
    while found.runner == runner:
        if time.monotonic() > latest:
            raise DenizenError(f"Process {runner} is still leaving. To end it at once: denizen moo group down {folder}")
        time.sleep(0.05)
    write(f"{found.path} has ended (process {runner}).\n")


@group.command(short_help="Say who of a group plays.")
@folder_argument
def status(folder: Path) -> int:
    """Say whether GROUP runs, how each agent is since when, and who holds the token. Status 1: it isn't running."""
    found = open_group(folder)
    states, runner = _states(found), found.runner
    token = next((state.token for state in states.values() if state.token), "")
    write(f"running: process {runner}; token: {token or 'nobody'}\n" if runner else "not running\n")
    rows = [
        (name, state.life, _time(state.since), state.doing if runner else "", str(state.restarts), state.problem)
        for name, state in states.items()
    ]
    print_table(["AGENT", "STATE", "SINCE", "DOING", "RESTARTS", "LAST FALL"], rows, elastic="LAST FALL")
    return 0 if runner else 1


@group.command(short_help="Say what the agents of a group have done and spent.")
@folder_argument
def stats(folder: Path) -> None:
    """Say how many cycles each agent has finished since GROUP was started, how they came out, and what they took."""
    titles = ["AGENT", "CYCLES", "DISPATCHED", "GOAL ONLY", "FAILED", "TOKENS", "COST", "SLOW (P95)"]
    rows = [
        (
            name,
            str(sum(state.tally.outcomes.values())),
            *(str(state.tally.outcomes.get(each, 0)) for each in ("dispatched", "goal_only", "llm_failed")),
            f"{state.tally.tokens:,}",
            f"${state.tally.cost_usd:.4f}",
            f"{slow_cycle(state.tally.seconds):.1f} s",
        )
        for name, state in _states(open_group(folder)).items()
    ]
    print_table(titles, rows, right=titles[1:])


@group.command("cycle-age", short_help="Say how long ago each agent's last cycle ended.")
@folder_argument
@click.option("--stale", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Over group.toml.")
def cycle_age(folder: Path, stale: float | None) -> int:
    """Print the seconds since the last finished cycle of each agent of GROUP, or since it was started.

    The exit status is 1 if one is stale: it doesn't play, or it isn't waiting for a page and has finished no cycle for
    `stale_seconds`, and for three times as long as its slow ones take.
    """
    found = open_group(folder)
    states, now = _states(found), time.time()
    is_stale = {name: state.is_stale(now, stale or found.settings.stale_seconds) for name, state in states.items()}
    rows = [
        (name, f"{state.cycle_age(now):.0f}" if state.since else "", "stale" if is_stale[name] else "")
        for name, state in states.items()
    ]
    print_table(["AGENT", "SECONDS", ""], rows, right=["SECONDS"])
    return 1 if any(is_stale.values()) else 0


def _states(found: Group) -> Mapping[str, AgentState]:
    """How the agents are; where the group's process was killed, none of them plays."""
    states, runner = found.states(), found.runner
    playing: Iterable[str] = {"starting", "playing", "fallen"}
    return {
        name: msgspec.structs.replace(state, life="stopped") if state.life in playing and not runner else state
        for name, state in states.items()
    }


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S}" if at else ""
