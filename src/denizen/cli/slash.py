"""The slash commands of `denizen chat`."""

import asyncio
import os
import sys
import textwrap
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import click

from denizen.cli.conversation import TerminalChat
from denizen.cli.output import say
from denizen.cli.text import one_line, printable
from denizen.engine.compact import compact
from denizen.engine.next_request import RequestPart, next_request, parts_of
from denizen.engine.resume import question_of, unfinished
from denizen.engine.undo import redo, undo
from denizen.events import TurnStop
from denizen.ports.sandbox import Sandboxed
from denizen.sessions import new_name, session_key, short_name
from denizen.tools.programs.process import BoundedOutput, LineEmitter, run
from denizen.worlds.commands import (
    context_text,
    help_text,
    split_command,
    unknown_command,
    usage_text,
    without_escape,
)
from denizen.worlds.server_prompts import SERVER_PROMPT

MAX_SHELL_BYTES = 30_000
"""Bytes of a `!command`'s output that the agent sees, from its beginning and its end."""

MAX_COMPLETED = 200
"""Sessions that Tab completes, the latest first."""


def is_command(text: str) -> bool:
    """Whether it looks like a command, as `/etc/hosts` and several lines don't."""
    text = text.strip()
    return bool(text.startswith("!") or ("\n" not in text and split_command(text)[0]) or SERVER_PROMPT.fullmatch(text))


async def respond(chat: TerminalChat, text: str) -> TurnStop | None:
    """Run a chat command (`/`) or a shell command (`!`), or send the text to the agent; returns how its turn ended.

    `!` works only for a person who types: piped input may be others' text.
    """
    if text.startswith("!") and chat.lines:
        return await _run_in_shell(chat, text)
    name, argument = split_command(text)
    if not name or "\n" in text.strip():
        return await chat.say(without_escape(text))
    if name in _HANDLERS:
        return await _HANDLERS[name](chat, argument)
    _print(unknown_command(name, _HANDLERS))
    return None


async def _run_in_shell(chat: TerminalChat, text: str) -> None:
    """Run the user's own command, outside the sandbox. The agent sees its output, unless it begins with `!!`."""
    command, kept = text.lstrip("!").strip(), BoundedOutput(MAX_SHELL_BYTES)
    shell = [os.environ.get("SHELL") or "/bin/sh", "-c", command]
    lines = LineEmitter(lambda shown: click.echo(printable(shown), err=True, nl=False), sys.maxsize)

    def take(data: bytes) -> None:
        kept.add(data)
        lines.add(data)

    status = await run(Sandboxed(shell, os.environ), Path.cwd(), seconds=None, take=take)
    lines.add(b"")
    if status:
        say(f"  exit code {status}", "red")
    if not text.startswith("!!"):
        output = kept.text("they were only shown to the user")
        chat.own_output += f"\n\n<stdin>\n$ {command}\n{output}\n</stdin>"


def argument_words(chat: TerminalChat) -> Mapping[str, Callable[[], Awaitable[Sequence[str]]]]:
    """Tab completions of arguments, by command."""

    async def sessions() -> Sequence[str]:
        return [short_name(info.key) for info in await chat.agent.store.page(MAX_COMPLETED)]

    async def models() -> Sequence[str]:
        from denizen.cli.models import ready_models

        return await asyncio.to_thread(ready_models, chat.loaded)

    async def outputs() -> Sequence[str]:
        return [str(number) for number in range(1, len(chat.outputs) + 1)]

    async def force() -> Sequence[str]:
        return ["force"]

    return {
        "sessions": sessions,
        "resume": sessions,
        "model": models,
        "output": outputs,
        "undo": force,
        "redo": force,
    }


async def _help(_: TerminalChat, __: str) -> None:
    _print(help_text("terminal"))
    _print("!command              run your own command; the agent sees its output with your next message (!!: never)")
    _print("Enter sends; Ctrl-J, or \\ at the end, begins another line; @path attaches a file.")
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


async def _fork(chat: TerminalChat, name: str) -> TurnStop | None:
    key, to = (await chat.session()).key, name or new_name(chat.agent.clock)
    await chat.agent.store.fork(key, to)
    return await _new(chat, to)


async def _status(chat: TerminalChat, _: str) -> None:
    about = {"model": chat.agent.model.name, "session": short_name(chat.name), "workspace": chat.agent.workspace}
    waits = question_of(chat.entries)
    state = f"waits for an answer: {waits.question}" if waits else "unfinished" if unfinished(chat.entries) else "done"
    _print("\n".join(f"{what}: {value}" for what, value in {**about, "last turn": state}.items()))


async def _usage(chat: TerminalChat, _: str) -> None:
    estimate = sum(part.tokens for part in await _parts(chat))
    _print(usage_text(chat.entries, _window(chat), estimate))


async def _context(chat: TerminalChat, _: str) -> None:
    _print(context_text(await _parts(chat), _window(chat)))


async def _parts(chat: TerminalChat) -> Sequence[RequestPart]:
    session = await chat.session()
    return [*parts_of(next_request(chat.agent.record, session.entries), "")]


def _window(chat: TerminalChat) -> int:
    return chat.agent.model.limits(session_key(chat.name)).window


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
    say(textwrap.indent(printable(text), "  "), "cyan")


_HANDLERS: Mapping[str, Callable[[TerminalChat, str], Awaitable[TurnStop | None]]] = {
    "help": _help,
    "continue": _continue,
    "new": _new,
    "sessions": _sessions,
    "fork": _fork,
    "status": _status,
    "usage": _usage,
    "context": _context,
    "model": _model,
    "compact": _compact,
    "undo": _undo,
    "redo": _redo,
    "output": _output,
    "quit": _quit,
}
"""Handlers of the terminal's commands. They take the rest of the line; those that run a turn return how it ended."""
