"""`denizen replay`: a session gone through again with its recorded replies."""

import asyncio
import dataclasses
from pathlib import Path

import click
import msgspec

from denizen.cli.home import store
from denizen.cli.options import TurnOptions, turn_options
from denizen.cli.output import write
from denizen.cli.text import cut, one_line, printable
from denizen.cli.turns import profile_of, run, settled, workspace_of
from denizen.config.load import Loaded
from denizen.worlds.code.replay import Step, replay

SHOWN = 100
"""Characters of a call."""


@click.command("replay")
@click.argument("name", metavar="SESSION")
@click.option("--from", "start", default="", metavar="ENTRY", help="From the turn that holds this entry on.")
@turn_options(session=False)
def replay_session(name: str, start: str, options: TurnOptions) -> int:
    """Go through a session again and say where tools now answer differently.

    The model's replies are the recorded ones: nothing is asked, and nothing is spent. The tools run in a copy of the
    files as they were when the session first changed them; what reaches out, and what a person answered, isn't run.
    The exit status is 1 where something differs.
    """
    entries = asyncio.run(store().read(name))
    began = workspace_of(entries)
    options = dataclasses.replace(options, profile=profile_of(entries) or options.profile)
    if began and not options.workspace:
        options = dataclasses.replace(options, workspace=Path(began))
    with asyncio.Runner() as runner:
        return run(runner, _replay(name, start, options, settled(options)))


async def _replay(name: str, start: str, options: TurnOptions, loaded: Loaded) -> int:
    same = differing = 0
    async with options.agent(loaded) as agent:
        async for step in replay(agent, await store().read(name), start=start):
            (_print_json if options.json else _show)(step)
            differing += step.differs
            same += step.now is not None and not step.differs
    if not options.json:
        write(f"{same} as recorded, {differing} different\n")
    return 1 if differing else 0


def _print_json(step: Step) -> None:
    told = {"entry": step.entry, "call": step.shown, "ran": step.now is not None, "differs": step.differs}
    write(msgspec.json.encode(told | {"difference": step.difference() if step.differs else ""}).decode() + "\n")


def _show(step: Step) -> None:
    sign, colour = ("·", "bright_black") if step.now is None else ("✗", "red") if step.differs else ("✓", "green")
    note = "  (not run again)" if step.now is None else ""
    write(click.style(f"{sign} {step.entry}  {cut(one_line(step.shown), SHOWN)}{note}", fg=colour) + "\n")
    if step.differs:
        write("".join(f"    {line}\n" for line in printable(step.difference()).splitlines()))
