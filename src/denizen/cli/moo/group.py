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

from denizen.cli.moo.own_process import play_in_own_process
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

STOP_TIMEOUT_S = 60.0
"""Seconds that `down` waits for a group to end."""

folder_argument = click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="GROUP")


@click.group("group")
def group() -> None:
    """Several agents that run together. GROUP is a directory with a group.toml and its agents' directories."""


@group.command(short_help="Run the agents of a group until they are stopped.")
@folder_argument
@click.option("--processes", type=click.Choice(["one", "each"]), help="One for all, or one each; over group.toml.")
@click.option("--model", default="", metavar="PROVIDER:MODEL", help="The model to use instead of the directories'.")
@click.option("--plain", is_flag=True, help="Print lines, also on a terminal.")
@click.option("--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="As in `denizen ask`.")
def up(folder: Path, *, processes: str | None, model: str, plain: bool, config: Path | None) -> int:
    """Sign in the agents of GROUP, and run them until they are stopped.

    An agent that fails is restarted, after 5 seconds and then ever longer; the others play on. Ctrl-C, SIGTERM and
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
    busy = f"{found.path} is already running (process {{holder}}). Stop it first: denizen moo group down {folder}"
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

    has_processes = found.settings.processes == "each"
    for missing in () if has_processes else trace(members[0].loaded.environ):
        seats[0].line("system", missing)

    async def play(seat: Seat) -> None:
        if has_processes:
            await play_in_own_process(seat, options, stop)
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
    latest = time.monotonic() + STOP_TIMEOUT_S
    while found.runner == runner:
        if time.monotonic() > latest:
            raise DenizenError(f"Process {runner} is still leaving. To end it at once: denizen moo group down {folder}")
        time.sleep(0.05)
    write(f"{found.path} has ended (process {runner}).\n")


@group.command(short_help="Show which agents of a group are playing.")
@folder_argument
def status(folder: Path) -> int:
    """Show whether GROUP runs, each agent's state, and who holds the token. Exit status 1: it isn't running."""
    found = open_group(folder)
    states, runner = _states(found), found.runner
    token = next((state.token for state in states.values() if state.token), "")
    write(f"running: process {runner}; token: {token or 'nobody'}\n" if runner else "not running\n")
    rows: list[Sequence[str]] = []
    for name, state in states.items():
        since = f"{datetime.fromtimestamp(state.since).astimezone():%Y-%m-%d %H:%M:%S}" if state.since else ""
        rows.append((name, state.life, since, state.doing if runner else "", str(state.restarts), state.problem))
    print_table(["AGENT", "STATE", "SINCE", "DOING", "RESTARTS", "LAST FALL"], rows, elastic="LAST FALL")
    return 0 if runner else 1


@group.command(short_help="Show what the agents of a group have done and spent.")
@folder_argument
def stats(folder: Path) -> None:
    """Show each agent's cycles since GROUP was started, their outcomes, and what they cost."""
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


@group.command("cycle-age", short_help="Show how long ago each agent's last cycle ended.")
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
