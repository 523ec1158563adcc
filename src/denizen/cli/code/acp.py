"""`denizen acp`: the agent for editors."""

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import msgspec

from denizen.cli.models import ready_models
from denizen.cli.options import MODEL, WORKPLACE, CommandOptions, command_options
from denizen.cli.turns import run
from denizen.config.extras import how_to_install
from denizen.config.settings import McpServer
from denizen.errors import DenizenError
from denizen.runtime.clock import SystemClock
from denizen.sessions import new_name
from denizen.worlds.assemble import Agent


@click.command("acp")
@command_options((MODEL, WORKPLACE), profile="coder")
def acp(options: CommandOptions) -> int:
    """Serve the agent to an editor over the Agent Client Protocol, on standard input and output.

    The editor chooses the folder of a session, shows what the agent does, and asks you for approvals. These sessions
    are listed by `denizen sessions`, too. This command needs the extra `acp`, and says how to install it.
    """
    try:
        from denizen.worlds.code.acp import Editors, serve
    except ImportError as missing:
        raise DenizenError(f"{missing.name} is not installed. Install it: {how_to_install('acp')}") from missing

    def options_in(folder: Path) -> CommandOptions:
        return dataclasses.replace(options, workspace=options.workspace or folder)

    def agent_in(folder: Path, model: str, servers: Mapping[str, McpServer]) -> tuple[Agent, Sequence[str]]:
        there = dataclasses.replace(options_in(folder), model=model or options.model)
        loaded = there.load()
        config = msgspec.structs.replace(loaded.config, mcp={**loaded.config.mcp, **servers})
        return there.agent(dataclasses.replace(loaded, config=config)), loaded.notices

    def models_in(folder: Path) -> Sequence[str]:
        return ready_models(options_in(folder).load())

    with asyncio.Runner() as runner:
        run(runner, serve(Editors(agent_in, models_in, lambda: new_name(SystemClock()))))
    return 0
