"""`denizen ask`: one message, one finished turn."""

import asyncio
import json
import sys
from pathlib import Path

import click

from denizen.cli.attachments import compose, read_piped, unattached
from denizen.cli.host import JsonHost
from denizen.cli.options import CommandOptions, command_options
from denizen.cli.terminal import Terminal
from denizen.cli.turns import STATUS, decide_folder, opened, run, turn_of
from denizen.config.home import places
from denizen.config.load import Loaded
from denizen.engine.output import OutputType
from denizen.errors import ConfigError
from denizen.events import Notice
from denizen.messages import UserMessage

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_EXAMPLES = """\b
Examples:
  denizen ask "What does @src/app.py do?"
  git diff | denizen ask "Review this change"
  denizen ask --continue "Now write the tests"
"""


@click.command(epilog=_EXAMPLES)
@click.argument("message", nargs=-1)
@click.option("--image", "images", multiple=True, type=_FILE, help="Show the agent a picture; may be repeated.")
@click.option("--output-schema", type=_FILE, help="Print an answer that matches this JSON schema.")
@command_options()
def ask(message: tuple[str, ...], images: tuple[Path, ...], output_schema: Path | None, options: CommandOptions) -> int:
    """Ask one question, or give one task.

    Piped input is added to the message; @path attaches a file. Without a message, --continue or --session goes on with
    an unfinished turn.

    Standard output gets the reply alone (in a pipe, only once it is final), without control characters; everything else
    goes to standard error. --json prints exact events instead of both.
    """
    with options.host() as host, asyncio.Runner() as runner:
        output = None
        if output_schema:
            try:
                schema = json.loads(output_schema.read_bytes())
            except (OSError, ValueError) as error:
                raise ConfigError(f"{output_schema} isn't a JSON schema: {error}.") from error
            if not isinstance(schema, dict):
                raise ConfigError(f"{output_schema} isn't a JSON schema: it must be an object.")
            output = OutputType(schema)
        loaded = decide_folder(options)
        piped = read_piped(sys.stdin)
        said = None
        if message or images or piped.strip() or not (options.continue_ or options.session):
            _, workspace = places(loaded.config)
            said = UserMessage(compose(" ".join(message), workspace, images, piped))
        for text in (*unattached(" ".join(message)), *loaded.notices):
            host.emit(Notice(text, "warning"))
        return run(runner, _ask(said, options, loaded, host, output))


async def _ask(
    said: UserMessage | None,
    options: CommandOptions,
    loaded: Loaded,
    host: Terminal | JsonHost,
    output: OutputType | None,
) -> int:
    options = await options.with_session(loaded, begun=said is None)
    async with options.agent(loaded) as agent, opened(agent, options.session, host) as session:
        return STATUS[await turn_of(agent, session, said, host, options.turn(agent, output))]
