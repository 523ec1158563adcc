"""The slash commands of `denizen chat`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import click

from denizen.cli.conversation import Conversation
from denizen.cli.output import say
from denizen.cli.text import one_line, printable
from denizen.engine.compact import compact
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
    run: Callable[[Conversation, str], Awaitable[TurnStop | None]]


def is_command(text: str) -> bool:
    """Whether it looks like a slash command, as `/etc/hosts` and several lines don't."""
    text = text.strip()
    return bool(("\n" not in text and split_command(text)[0]) or SERVER_PROMPT.fullmatch(text))


async def respond(chat: Conversation, text: str) -> TurnStop | None:
    """Run what looks like a slash command, give the rest to the agent; how the turn ended, if one ran."""
    name, argument = split_command(text)
    if not name or "\n" in text.strip():
        return await chat.say(without_escape(text))
    if name in COMMANDS:
        return await COMMANDS[name].run(chat, argument)
    _print(unknown_command(name, COMMANDS))
    return None


async def _help(_: Conversation, __: str) -> None:
    for command in COMMANDS.values():
        _print(f"{command.usage:18} {command.does}")
    _print("/SERVER:PROMPT words  says a prompt of an MCP server, filled in with the words")
    _print("//word                 sends /word to the agent")
    _print("Enter sends; Alt-Enter, or \\ at the end, begins another line; @path attaches a file.")
    _print("What you enter while the agent works is passed on to it; ↑ takes back what it hasn't got yet.")
    _print("Ctrl-C stops it, and what it hadn't got yet is at the prompt again. Ctrl-D leaves.")


async def _new(chat: Conversation, name: str) -> TurnStop | None:
    await chat.change_session(name)
    _print(f"session {short_name(chat.name)}")
    return await chat.reopen()


async def _continue(chat: Conversation, _: str) -> TurnStop:
    return await chat.go_on()


async def _sessions(chat: Conversation, name: str) -> TurnStop | None:
    if name:
        return await _new(chat, name)
    for info in await chat.agent.store.page(20):
        _print(f"{short_name(info.key):24} {info.title}")
    return None


async def _usage(chat: Conversation, _: str) -> None:
    session = await chat.session()
    _print(usage_text(session.entries, chat.agent.model.limits(session.key).window))


async def _output(chat: Conversation, number: str) -> None:
    wanted = int(number) if number.isdecimal() else len(chat.outputs) if not number else 0
    if 0 < wanted <= len(chat.outputs):
        click.echo(printable(chat.outputs[wanted - 1]), err=True)
    else:
        _print(
            "No output was shortened so far." if not chat.outputs else f"Available: /output 1 to {len(chat.outputs)}."
        )


async def _compact(chat: Conversation, _: str) -> None:
    if chat.prompt:
        chat.prompt.show("making the context smaller …", chat.agent.clock.monotonic())
    with chat.host() as host:
        if not await compact(chat.agent.record, await chat.session(), host):
            _print("Nothing to compact.")


async def _undo(chat: Conversation, how: str) -> None:
    said = await undo(chat.agent.record, await chat.session(), force=how == "force")
    _print(f"undone: {one_line(said)} (/redo takes that back)")


async def _redo(chat: Conversation, how: str) -> None:
    said = await redo(chat.agent.record, await chat.session(), force=how == "force")
    _print(f"redone: {one_line(said)}")


async def _model(chat: Conversation, name: str) -> None:
    if name:
        await chat.change_model(name)
    _print(f"model {chat.agent.model.name}")


async def _quit(chat: Conversation, _: str) -> None:
    chat.over = True


def _print(text: str) -> None:
    say(f"  {printable(text)}", "cyan")


COMMANDS = {
    "help": SlashCommand("/help", "show this", _help),
    "continue": SlashCommand("/continue", "go on with an unfinished turn", _continue),
    "new": SlashCommand("/new [NAME]", "begin a new session", _new),
    "sessions": SlashCommand("/sessions [NAME]", "list the sessions, or go on with one", _sessions),
    "output": SlashCommand("/output [N]", "the whole output of a tool: the last one, or N", _output),
    "usage": SlashCommand("/usage", "what this session used", _usage),
    "compact": SlashCommand("/compact", "make the context smaller: a summary replaces what is old", _compact),
    "undo": SlashCommand("/undo [force]", "take back the last turn, and what it did to files", _undo),
    "redo": SlashCommand("/redo [force]", "take back the last /undo", _redo),
    "model": SlashCommand("/model [NAME]", "show the model, or go on with another", _model),
    "quit": SlashCommand("/quit", "leave (also: Ctrl-D)", _quit),
}
