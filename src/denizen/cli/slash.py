"""The slash commands of `denizen chat`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import click

from denizen.cli.conversation import TerminalChat
from denizen.cli.output import say
from denizen.cli.text import one_line, printable
from denizen.engine.compact import compact
from denizen.engine.next_request import next_request, parts_of
from denizen.engine.undo import redo, undo
from denizen.events import TurnStop
from denizen.sessions import short_name
from denizen.worlds.commands import split_command, unknown_command, usage_text, without_escape
from denizen.worlds.server_prompts import SERVER_PROMPT


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """How it is written, what it does, and the function that does it, given the rest of the line."""

    usage: str
    does: str
    run: Callable[[TerminalChat, str], Awaitable[TurnStop | None]]


def is_command(text: str) -> bool:
    """Whether it looks like a slash command, as `/etc/hosts` and several lines don't."""
    text = text.strip()
    return bool(("\n" not in text and split_command(text)[0]) or SERVER_PROMPT.fullmatch(text))


async def respond(chat: TerminalChat, text: str) -> TurnStop | None:
    """Run what looks like a slash command, give the rest to the agent; how the turn ended, if one ran."""
    name, argument = split_command(text)
    if not name or "\n" in text.strip():
        return await chat.say(without_escape(text))
    if name in COMMANDS:
        return await COMMANDS[name].run(chat, argument)
    _print(unknown_command(name, COMMANDS))
    return None


async def _help(_: TerminalChat, __: str) -> None:
    for command in COMMANDS.values():
        _print(f"{command.usage:18} {command.does}")
    _print("/SERVER:PROMPT words  sends a prompt of an MCP server, filled in with the words")
    _print("//word                 sends /word to the agent")
    _print("Enter sends; Alt-Enter, or \\ at the end, begins another line; @path attaches a file.")
    _print(
        "Messages entered while the agent works are passed on to it; ↑ takes back the last one that it hasn't received."
    )
    _print("Ctrl-C stops it, and puts what it hasn't received back at the prompt. Ctrl-D leaves.")


async def _new(chat: TerminalChat, name: str) -> TurnStop | None:
    await chat.change_session(name)
    _print(f"session {short_name(chat.name)}")
    return await chat.reopen()


async def _continue(chat: TerminalChat, _: str) -> TurnStop:
    return await chat.go_on()


async def _sessions(chat: TerminalChat, name: str) -> TurnStop | None:
    if name:
        return await _new(chat, name)
    for info in await chat.agent.store.page(20):
        _print(f"{short_name(info.key):24} {info.title}")
    return None


async def _usage(chat: TerminalChat, _: str) -> None:
    session = await chat.session()
    estimate = sum(part.tokens for part in parts_of(next_request(chat.agent.record, session.entries), ""))
    _print(usage_text(session.entries, chat.agent.model.limits(session.key).window, estimate))


async def _output(chat: TerminalChat, number: str) -> None:
    wanted = int(number) if number.isdecimal() else len(chat.outputs) if not number else 0
    if 0 < wanted <= len(chat.outputs):
        click.echo(printable(chat.outputs[wanted - 1]), err=True)
    else:
        _print(
            "No output has been shortened yet." if not chat.outputs else f"Available: /output 1 to {len(chat.outputs)}."
        )


async def _compact(chat: TerminalChat, _: str) -> None:
    if chat.live:
        chat.live.show("making the context smaller …", chat.agent.clock.monotonic())
    with chat.host() as host:
        if not await compact(chat.agent.record, await chat.session(), host):
            _print("Nothing to compact.")


async def _undo(chat: TerminalChat, how: str) -> None:
    said = await undo(chat.agent.record, await chat.session(), force=how == "force")
    _print(f"undone: {one_line(said)} (/redo takes that back)")


async def _redo(chat: TerminalChat, how: str) -> None:
    said = await redo(chat.agent.record, await chat.session(), force=how == "force")
    _print(f"redone: {one_line(said)}")


async def _model(chat: TerminalChat, name: str) -> None:
    if name:
        await chat.change_model(name)
    _print(f"model {chat.agent.model.name}")


async def _quit(chat: TerminalChat, _: str) -> None:
    chat.over = True


def _print(text: str) -> None:
    say(f"  {printable(text)}", "cyan")


COMMANDS = {
    "help": SlashCommand("/help", "list the commands", _help),
    "continue": SlashCommand("/continue", "resume an unfinished turn", _continue),
    "new": SlashCommand("/new [NAME]", "begin a new session", _new),
    "sessions": SlashCommand("/sessions [NAME]", "list the sessions, or switch to one", _sessions),
    "output": SlashCommand("/output [N]", "the whole output of a tool: the last one, or N", _output),
    "usage": SlashCommand("/usage", "show the tokens and cost of this session", _usage),
    "compact": SlashCommand("/compact", "replace older messages with a summary", _compact),
    "undo": SlashCommand("/undo [force]", "undo the last turn and its file changes", _undo),
    "redo": SlashCommand("/redo [force]", "undo the last /undo", _redo),
    "model": SlashCommand("/model [NAME]", "show the model, or switch to another", _model),
    "quit": SlashCommand("/quit", "leave (also: Ctrl-D)", _quit),
}
