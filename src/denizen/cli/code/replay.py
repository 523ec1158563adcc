"""`denizen replay`: run a session's tools again, with the recorded replies."""

import asyncio
from collections.abc import Sequence

import click

from denizen.cli.home import store
from denizen.cli.options import WORKPLACE, CommandOptions, command_options
from denizen.cli.output import write, write_json
from denizen.cli.text import cut, one_line, printable
from denizen.cli.turns import decide_folder, options_as_begun, run
from denizen.config.load import Loaded
from denizen.entries import AnyEntry
from denizen.worlds.code.replay import RecordedModel, replay


@click.command("replay")
@click.argument("name", metavar="SESSION")
@click.option("--from", "start", default="", metavar="ENTRY", help="Start with the turn that contains this entry.")
@click.option("--json", is_flag=True, help="One JSON object a line for each call.")
@command_options((WORKPLACE,))
def replay_session(name: str, start: str, options: CommandOptions) -> int:
    """Run a session's tool calls again, and show which results differ now.

    No model is called: the replies are the recorded ones. The tools run in a copy of the files as they were when the
    session first changed them; calls that reach out or ask a person give their recorded results. Folder, profile and
    action format are the session's, unless options name others. The exit status is 1 if a result differs.
    """
    entries = asyncio.run(store().read(name))
    options = options_as_begun(options, entries)
    with asyncio.Runner() as runner:
        return run(runner, _replay(entries, start, options, decide_folder(options)))


async def _replay(entries: Sequence[AnyEntry], start: str, options: CommandOptions, loaded: Loaded) -> int:
    same = differing = 0
    nobody = RecordedModel("recorded", lambda: None)  # so that no key is needed: `replay` has the replies
    async with options.agent(loaded, model=nobody) as agent:
        async for step in replay(agent, entries, start=start):
            difference = step.difference() if step.differs else ""
            differing += step.differs
            same += step.now is not None and not step.differs
            if options.json:
                facts = {"entry": step.entry, "call": step.shown, "ran": step.now is not None, "differs": step.differs}
                write_json(facts | {"difference": difference})
                continue
            sign, colour = ("✗", "red") if step.differs else ("✓", "green")
            note = ""
            if step.now is None:
                sign, colour, note = "·", "bright_black", "  (not run again)"
            write(click.style(f"{sign} {step.entry}  {cut(one_line(step.shown), 100)}{note}", fg=colour) + "\n")
            write("".join(f"    {line}\n" for line in printable(difference).splitlines()))
    if not options.json:
        write(f"{same} the same, {differing} different\n")
    return 1 if differing else 0
