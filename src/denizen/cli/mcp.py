"""`denizen mcp`: the MCP servers, what they have, and what of it is accepted."""

import asyncio
import difflib
import os
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

import click
import msgspec

from denizen.cli.home import home
from denizen.cli.output import accept_change, is_interactive, print_table, say, write
from denizen.cli.text import one_line, printable, visible
from denizen.config.home import ensure_home, places
from denizen.config.load import Loaded, load
from denizen.config.pins import Pins
from denizen.config.redact import Redactor
from denizen.config.settings import McpServer
from denizen.config.write import add_table
from denizen.errors import ConfigError, DenizenError
from denizen.runtime.clock import SystemClock
from denizen.text.plural import counted
from denizen.tools.mcp import McpServers
from denizen.tools.mcp.connection import McpConnection
from denizen.tools.mcp.listing import KnownTool, Listing, Pin, pin_name
from denizen.tools.mcp.remote import Remote, Tokens
from denizen.trusted.programs import trusted_environ
from denizen.trusted.session_files import SessionFiles

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_SIGN_IN_TIMEOUT_S = 600.0
"""How long a person may take to sign in."""


@click.group()
def mcp() -> None:
    """MCP servers, which give the agent more tools: [mcp.NAME] in denizen.toml, and .mcp.json of trusted projects."""


@mcp.command("list")
def list_servers() -> None:
    """List the servers, without starting any."""
    loaded = load()
    for text in loaded.notices:
        click.secho(printable(text), fg="yellow", err=True)
    if not loaded.config.mcp:
        say("No MCP servers are configured. Add one: denizen mcp add NAME COMMAND… or denizen mcp add NAME URL")
    redactor = Redactor.from_environ(loaded.environ, loaded.secrets)
    rows = [
        (name, one_line(redactor.text(server.url or " ".join([server.command, *server.args]))), _state(name, server))
        for name, server in loaded.config.mcp.items()
    ]
    if rows:
        print_table(("name", "server", "state"), rows, elastic="server")


def _state(name: str, server: McpServer) -> str:
    pin = Pins(home() / "mcp", Pin).read(pin_name(name, server))
    if not server.enabled:
        return "off"
    if pin is None:
        return "not started yet"
    return f"changed: denizen mcp trust {name}" if pin.found else counted(len(pin.accepted.tools), "tool")


@mcp.command(short_help="Add a server to your denizen.toml.", context_settings={"allow_interspersed_args": False})
@click.option(
    "--env",
    "env",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set this variable for the program; '${NAME}' takes it from yours.",
)
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="Send this with each request to a URL.")
@click.option("--cwd", default="", help="The folder that the program runs in (default: the workspace).")
@click.argument("name")
@click.argument("target", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND… | URL")
def add(name: str, target: tuple[str, ...], env: Sequence[str], headers: Sequence[str], cwd: str) -> None:
    """Add a server to your denizen.toml: a program with its arguments, or the address of one that is reached over HTTP.

    Options of Denizen come before NAME; all that follows belongs to the program.
    """
    if not _NAME.fullmatch(name):
        raise click.UsageError(f"{name!r} can't name a server. Use at most 40 letters, digits, - and _.")
    if len(target) == 1 and target[0].startswith(("http://", "https://")):
        settings = {"url": target[0], "headers": _pairs(headers)}
    else:
        settings = {"command": target[0], "args": [*target[1:]], "env": _pairs(env), "cwd": cwd}
    add_table(home(), "mcp", name, {key: value for key, value in settings.items() if value})
    write(f"{home() / 'denizen.toml'}\n")
    say(f"Added. Try it: denizen mcp test {name}")


def _pairs(given: Sequence[str]) -> dict[str, str]:
    if wrong := [each for each in given if "=" not in each]:
        raise click.UsageError(f"{wrong[0]!r} isn't NAME=VALUE.")
    return dict(each.split("=", 1) for each in given)


@mcp.command(short_help="Start a server, and show what it has.")
@click.argument("name")
def test(name: str) -> None:
    """Start a server or connect to it, and show what it has. Tools that aren't accepted are marked."""

    async def show(servers: McpServers) -> None:
        listing, pin = await servers.look(name)
        has = [counted(len(listing.tools), "tool"), *(["resources"] if listing.resources else [])]
        write(f"{name}: {', '.join([*has, *([counted(len(listing.prompts), 'prompt')] if listing.prompts else [])])}\n")
        if listing.instructions:
            held = " (held back)" if listing.instructions != pin.accepted.instructions else ""
            write(f"  instructions{held}: {one_line(listing.instructions)}\n")
        for tool in listing.tools.values():
            held = " (held back)" if tool.name in pin.changed else ""
            does = "reads" if tool.only_reads else "any"
            write(f"  {one_line(tool.name)}{held}  [{does}]  {one_line(tool.description)[:100]}\n")

    _with_servers(name, show)


@mcp.command(short_help="Accept a server's tools and instructions as they are now.")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Don't ask.")
def trust(name: str, yes: bool) -> None:
    """Show what changed in a server's tools and instructions since they were accepted, and accept it if you say so.

    The model reads the descriptions of tools, and a malicious one may tell it to do harm: read them first.
    """

    async def decide(servers: McpServers) -> None:
        _, pin = await servers.look(name)
        if pin.found is None:
            say(f"Everything that {name} has is accepted: {counted(len(pin.accepted.tools), 'tool')}.")
            return
        write("".join(_difference(pin.accepted, pin.found)))
        accept_change(f"Accept {name} as it is now?", yes=yes)
        await servers.accept(name)
        say("Accepted.")

    _with_servers(name, decide)


def _difference(accepted: Listing, found: Listing) -> Iterator[str]:
    def words(tool: KnownTool | None) -> str:
        if tool is None:
            return ""
        rest = msgspec.json.format(msgspec.json.encode([tool.schema, tool.annotations], order="sorted")).decode()
        return f"{tool.description}\n{rest}"

    texts = {"instructions": (accepted.instructions, found.instructions)}
    for name in {**accepted.tools, **found.tools}:
        texts[f"tool {name}"] = (words(accepted.tools.get(name)), words(found.tools.get(name)))
    for name, (old, new) in texts.items():
        if old != new:
            yield f"{visible(name)} ({'new' if not old else 'gone' if not new else 'changed'})\n"
            before, after = visible(old).splitlines(), visible(new).splitlines()
            yield from (f"  {line}\n" for line in [*difflib.unified_diff(before, after, lineterm="", n=2)][2:])


@mcp.command(short_help="Sign in to a server over HTTP.")
@click.argument("name")
def login(name: str) -> None:
    """Sign in to a server over HTTP that requires it (OAuth). The tokens are kept in the home."""
    loaded = load()
    server = _find(loaded, name)
    if not server.url:
        raise ConfigError(f"mcp.{name} is a program: set its keys in mcp.{name}.env.")
    _, workspace = places(loaded.config)
    ensure_home(home())
    clock, tokens = SystemClock(), Tokens(home(), server.url, SystemClock())

    async def browse(address: str) -> None:
        if not address.startswith(("https://", "http://")):
            raise DenizenError(f"{name} wants to open something that isn't a web page: {printable(address)}")
        click.echo(f"Open this page to sign in:\n{printable(address)}", err=True)
        if is_interactive():
            os.environ |= trusted_environ(os.environ, workspace)  # it starts a browser by name
            click.launch(address)

    async def sign_in() -> None:
        tokens.forget()
        patient = msgspec.structs.replace(server, start_timeout=_SIGN_IN_TIMEOUT_S)
        connection = McpConnection(
            name, patient, Remote(name, server, tokens, browse), clock, workspace, SessionFiles(home())
        )
        try:
            await connection.listing()
        finally:
            await connection.close()

    asyncio.run(sign_in())
    say(f"Signed in to {name}." if tokens.kept.tokens else f"{name} doesn't need a sign-in.")


def _find(loaded: Loaded, name: str) -> McpServer:
    if name not in loaded.config.mcp:
        near = difflib.get_close_matches(name, loaded.config.mcp, 1, 0.5)
        hint = f"Did you mean {near[0]}?" if near else f"Available: {', '.join(loaded.config.mcp) or 'none'}."
        raise ConfigError(f"There is no MCP server {name}. {hint}")
    return loaded.config.mcp[name]


def _with_servers(name: str, work: Callable[[McpServers], Awaitable[T]]) -> T:
    """Do something with that server, which has ended then."""
    loaded = load()
    server = msgspec.structs.replace(_find(loaded, name), enabled=True)
    _, workspace = places(loaded.config)
    ensure_home(home())

    async def run() -> T:
        servers = McpServers(
            {name: server},
            SessionFiles.of(loaded.config),
            workspace=workspace,
            environ=loaded.environ,
            clock=SystemClock(),
            most_tools=0,
        )
        try:
            return await work(servers)
        finally:
            await servers.close()

    return asyncio.run(run())
