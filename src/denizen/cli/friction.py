"""`denizen friction`: where tools cost more than they should, and the defaults that would help."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from typing import get_args

import click

from denizen.cli.home import home, store
from denizen.cli.output import confirm, print_table, write, write_json
from denizen.cli.text import one_line
from denizen.config.load import load
from denizen.config.write import set_tool_default, to_toml
from denizen.entries import AnyEntry
from denizen.errors import SessionError
from denizen.messages import AssistantMessage, ToolCall
from denizen.ports import Toolset
from denizen.tools.friction import Friction, Kind, Proposal, friction, proposals
from denizen.worlds.assemble import FORMATS, Agent
from denizen.worlds.world import worlds

KINDS: tuple[Kind, ...] = get_args(Kind)
_MAX_EXAMPLES = 3


@click.command("friction")
@click.option("--session", "names", multiple=True, metavar="NAME", help="Only this session; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, with every detail.")
@click.option("--accept", multiple=True, metavar="TOOL.ARGUMENT", help="Accept this proposal; may be repeated.")
def show_friction(names: tuple[str, ...], as_json: bool, accept: tuple[str, ...]) -> None:
    """Show where tools cost more than they should, as transcripts show it: calls that were repeated, misused, refused,
    corrected, cut off or worked around. Where another default would have saved calls, it is proposed: accept it, and
    it goes into denizen.toml in the home.
    """
    found, proposed = _found(names)
    if accept:
        by_name = {proposal.name: proposal for proposal in proposed}
        unknown = next((name for name in accept if name not in by_name), None)
        if unknown is not None:
            raise click.UsageError(f"{unknown} isn't proposed; proposals: {', '.join(by_name) or 'none'}.")
        for name in accept:
            _take(by_name[name])
    elif as_json:
        tools = [{"tool": each.tool, "calls": each.calls, **{kind: each.of[kind] for kind in KINDS}} for each in found]
        write_json({"tools": tools, "proposals": proposed})
    elif found:
        _report(found)
        if not proposed:
            return
        write("\nproposals\n" + "".join(f"  {one_line(f'{_setting(each)}: {each.why}')}\n" for each in proposed))
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            write(f"\nto accept one: denizen friction --accept {proposed[0].name}\n")
            return
        for each in proposed:
            if confirm(f"Set {each.name} = {to_toml(each.value)}?"):
                _take(each)
    else:
        click.echo("No tools have been called yet.", err=True)


def _found(names: Sequence[str]) -> tuple[list[Friction], list[Proposal]]:
    loaded = load()
    agents = [Agent(loaded.config, profile=world.profile, environ=loaded.environ) for world in worlds()]
    tools = Toolset({tool.name: tool for agent in agents for tool in agent.tools}.values())

    def calls_of(message: AssistantMessage) -> list[ToolCall]:
        """The calls in every form in which they may be written: the results' ids say which was meant."""
        return [call for form in FORMATS.values() for call in form.read(message, tools).calls]

    schemas = {tool.name: tool.schema for tool in tools}
    found = friction(((entries, calls_of) for entries in _transcripts(names)), schemas)
    return found, proposals(found, schemas)


def _transcripts(names: Sequence[str]) -> Iterator[Sequence[AnyEntry]]:
    """Those of the sessions that are named; else of all that can be read."""
    for name in names:
        yield asyncio.run(store().read(name))
    for info in [] if names else asyncio.run(store().list()):
        try:
            yield asyncio.run(store().read(info.key))
        except SessionError as error:
            click.secho(f"left out: {error}", fg="yellow", err=True)


def _report(found: Sequence[Friction]) -> None:
    titles = ("calls", *(kind.replace("_", " ") for kind in KINDS))
    rows = [(each.tool, str(each.calls), *(str(each.count(kind) or "") for kind in KINDS)) for each in found]
    print_table(("tool", *titles), rows, right=titles)
    for each in found:
        examples = [
            one_line(f"{count}x {kind.replace('_', ' ')}: {what}")
            for kind in KINDS
            for what, count in each.of[kind].most_common(_MAX_EXAMPLES)
        ]
        if examples:
            write(f"\n{each.tool}\n" + "".join(f"  {line}\n" for line in examples))


def _take(proposal: Proposal) -> None:
    set_tool_default(home(), proposal.tool, proposal.argument, proposal.value)
    write(f"set {one_line(_setting(proposal))} in {home() / 'denizen.toml'}\n")


def _setting(proposal: Proposal) -> str:
    now = "" if proposal.now is None else f" in place of {to_toml(proposal.now)}"
    return f"{proposal.name} = {to_toml(proposal.value)}{now}"
