"""`denizen`: the commands, each loaded when it is used, and the exit status for each failure."""

import difflib
import errno
import gc
import importlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from denizen import __version__
from denizen.cli.output import is_interactive, not_written, say, say_error
from denizen.errors import ConfigError, DenizenError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from click.shell_completion import CompletionItem
    from typing_extensions import Buffer

FAILED, WRONG_USE, CANCELLED = 1, 2, 130

COMMANDS = {
    "ask": ("denizen.cli.ask:ask", "Ask one question, or give one task."),
    "code": ("denizen.cli.code.task:code", "Do one task in a project: look, change, check."),
    "chat": ("denizen.cli.chat:chat", "Talk with the agent."),
    "answer": ("denizen.cli.answer:answer", "Answer the question of a parked turn, and continue the turn."),
    "sessions": ("denizen.cli.sessions:sessions", "List, show, fork, remove or export conversations."),
    "checkpoints": ("denizen.cli.checkpoints:checkpoints", "List, compare, make or restore snapshots of files."),
    "memory": ("denizen.cli.memory:memory", "List, search, forget, export or import what is remembered."),
    "skills": ("denizen.cli.skills:skills", "List and show skills; review changes to them, and trust them."),
    "replay": ("denizen.cli.code.replay:replay_session", "Run a session's tool calls again, and show what differs."),
    "context": ("denizen.cli.context:context", "Show what the next model call of a session contains."),
    "friction": (
        "denizen.cli.friction:show_friction",
        "Show where tool calls were wasted, and propose better defaults.",
    ),
    "acp": ("denizen.cli.code.acp:acp", "Serve the agent to an editor (Agent Client Protocol)."),
    "gateway": ("denizen.cli.gateway.gateway:gateway", "Serve the agent to chats and programs."),
    "web": ("denizen.cli.gateway.web:web", "Open the agent's page in a browser."),
    "worker": ("denizen.cli.gateway.worker:worker", "Run the gateway's turns, also on other machines."),
    "send": ("denizen.cli.gateway.send:send", "Send a message to the gateway, and print its reply."),
    "pair": ("denizen.cli.gateway.pair:pair", "List, approve or revoke the senders who may write to the agent."),
    "cron": ("denizen.cli.gateway.cron:cron", "List, add or change the gateway's scheduled jobs."),
    "status": ("denizen.cli.gateway.status:status", "Show whether a gateway runs, and where."),
    "channels": ("denizen.cli.gateway.channels:channels", "List or add the gateway's channels."),
    "moo": ("denizen.cli.moo.moo:moo", "Create, check and run characters of a text world."),
    "mcp": ("denizen.cli.mcp:mcp", "List, add, test, trust or sign in to MCP servers."),
    "models": ("denizen.cli.models:models", "List the providers and models that can be used."),
    "import": (
        "denizen.cli.imports.command:import_assistant",
        "Import memory, persona and skills of another assistant.",
    ),
    "config": ("denizen.cli.config:config", "Write, check or find the configuration."),
    "trust": ("denizen.cli.config:trust_place", "Trust a folder, or accept a changed file."),
    "completion": ("denizen.cli.config:completion", "Install Tab completion for your shell."),
    "doctor": ("denizen.cli.doctor:doctor", "Check the set-up, and say how to fix what doesn't work."),
}

_FIRST_STEPS = """\b
First steps:
  denizen doctor
  denizen ask "What language is this project?"
  denizen code "test_dates fails. Fix it."
  denizen chat
"""


class _Lazy(click.Group):
    """Knows its commands' names and one-line helps without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, _ in _help_lines()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return _load(found) if (found := _of_packages().get(cmd_name)) else None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        return getattr(importlib.import_module(module), name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as wrong:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            ctx.fail(wrong.message + (f" Did you mean {near[0]}?" if near else ""))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.Abort from None  # or click adds an empty line

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(name, help=text) for name, text in _help_lines() if name.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(_help_lines())


def _of_packages() -> dict[str, "EntryPoint"]:
    """The commands that other packages bring, by name; they are loaded when they are used, as ours are."""
    from denizen.config.plugins import entry_points

    return {entry.name: entry for entry in entry_points("denizen.commands")}


def _help_lines() -> list[tuple[str, str]]:
    """Each command with its line of the help."""
    ours = [(name, text) for name, (_, text) in COMMANDS.items()]
    return ours + [(name, f"From {entry.value.partition(':')[0]}.") for name, entry in _of_packages().items()]


def _load(entry: "EntryPoint") -> click.Command:
    try:
        command = entry.load()
    except Exception as broken:  # the boundary to other packages: whatever they raise, the user must act
        raise ConfigError(f"{entry.value} can't be loaded: {broken}. Update or remove its package.") from broken
    if not isinstance(command, click.Command):
        raise ConfigError(f"{entry.value} isn't a click command. Update or remove its package.")
    return command


@click.group(
    cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=_FIRST_STEPS
)
@click.version_option(__version__, prog_name="denizen")
def cli() -> None:
    """An agent that answers questions about a folder, and works in it.

    Without a command, `denizen` on a terminal starts `denizen chat`.

    Exit status: 0 answered, 1 failed, 2 wrong use or configuration, 3 stopped without an answer (limit, loop, budget),
    4 parked: a person must answer first, 130 cancelled.
    """
    try:
        Path.cwd()
    except FileNotFoundError:
        raise ConfigError("The current folder no longer exists. Change to another one first.") from None
    from denizen.cli.text import printable
    from denizen.config.home import find_home
    from denizen.trusted.pending_checks import run_pending_checks

    if found := run_pending_checks(find_home(os.environ, Path.cwd()), os.environ):
        say(printable(found), "yellow")


def main() -> None:
    """Run the command line and exit with its status."""
    gc.set_threshold(50_000, 20, 20)  # modules stay loaded: scanning them for garbage again and again costs 40 ms
    _fill_streams()
    status = run()
    try:
        if not sys.stdout.closed:  # the library of `denizen acp` closes it when the editor leaves
            sys.stdout.flush()
    except OSError as error:
        # What can't be written is dropped, or Python would fail at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if status == 0:
            say_error(not_written(error))
            status = FAILED
    sys.exit(status)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command, `chat` if none is given on a terminal; its exit status. Errors go to standard error."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments and is_interactive():
        arguments = ["chat"]
    colour = False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None
    try:
        status = cli.main(arguments, prog_name="denizen", standalone_mode=False, color=colour)
    except click.exceptions.NoArgsIsHelpError as group:  # a group without a command shows its help
        group.show()
        return group.exit_code
    except click.ClickException as wrong:
        if isinstance(wrong, click.UsageError) and wrong.ctx:
            click.echo(f"{wrong.ctx.get_usage()}\nTry: {wrong.ctx.command_path} --help\n", err=True)
        say_error(DenizenError(wrong.format_message()))
        return wrong.exit_code
    except DenizenError as error:
        say_error(error)
        return WRONG_USE if isinstance(error, ConfigError) else FAILED
    except (click.Abort, KeyboardInterrupt):
        return CANCELLED
    except OSError as error:  # click itself prints helps and versions
        if error.errno == errno.EIO and not error.filename:  # the terminal is gone
            return CANCELLED
        if error.errno != errno.ENOSPC or error.filename:
            raise
        say_error(not_written(error))
        return FAILED
    return status if isinstance(status, int) else 0


class _Dispensable(io.FileIO):
    """A file that a full disk makes shorter: what can't be written there stops nothing."""

    def write(self, data: "Buffer", /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:  # whoever read it is gone, as after `2>&1 | head`: the program ends
            raise
        except OSError:
            return memoryview(data).nbytes


def _fill_streams() -> None:
    """Open closed standard streams on /dev/null, and let odd characters never stop the program.

    The numbers of closed streams stay taken, or what is written there would go into the file that gets them next.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name) or os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8", closefd=False)
        stream.reconfigure(errors="replace")
        setattr(sys, name, stream)
    log = io.BufferedWriter(_Dispensable(sys.stderr.fileno(), "w", closefd=False))
    sys.stderr = io.TextIOWrapper(log, sys.stderr.encoding, "replace", line_buffering=True)
