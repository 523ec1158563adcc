"""A world of another package: a keeper of a garden, with a tool, words and settings of its own."""

import click
import msgspec

from denizen import run_agent_sync, tool
from denizen.actions import Native
from denizen.context import Transcript
from denizen.messages import AssistantMessage, ToolCall
from denizen.ports import Tool, Traits
from denizen.testing import ScriptedModel
from denizen.worlds.assemble import Agent
from denizen.worlds.world import Profile, ToolParts, World


class GardenSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[garden]` of denizen.toml."""

    beds: tuple[str, ...] = ("roses",)


def garden_tools(parts: ToolParts) -> list[Tool]:
    """The tools of the world, made of what an agent has: its configuration, workspace, memory, sandbox."""
    beds = parts.config.section("garden", GardenSettings).beds

    @tool(traits=Traits.SENDS)
    def water(bed: str) -> str:
        """Water a bed."""
        return f"{bed} watered" if bed in beds else f"there are {', '.join(beds)}"

    return [water]


KEEPER = Profile("keeper", Native(), Transcript, garden_tools, identity="You keep a garden.")
WORLD = World("garden", KEEPER, settings=GardenSettings)


@click.command()
@click.argument("words")
def garden(words: str) -> None:
    """Talk with the keeper of the garden."""
    click.echo(run_agent_sync(words, session_key="garden talk", agent=Agent(profile=KEEPER)).reply)


if __name__ == "__main__":
    model = ScriptedModel([AssistantMessage([ToolCall("1", "water", {"bed": "roses"})], stop_reason="tool_calls")])
    result = run_agent_sync("Water the roses.", session_key="garden", agent=Agent(profile=KEEPER, model=model))
    print(result.stop_reason)
