"""Slash commands of terminal and chats: the table, parsing, and the answer to an unknown command."""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from denizen.engine.next_request import RequestPart
from denizen.entries import AnyEntry, AssistantEntry, EndEntry
from denizen.messages import Usage
from denizen.text.plural import counted, usage_parts

Place = Literal["terminal", "chats"]
"""Where commands are typed: in `denizen chat`, or in the gateway's chats."""


class SlashCommand(NamedTuple):
    """What a command does, and its arguments in each place (None: it doesn't exist there).

    `who` is a footnote mark for commands that not everybody may use in chats.
    """

    does: str
    terminal: str | None = None
    chats: str | None = None
    who: str = ""


COMMANDS: Final[Mapping[str, SlashCommand]] = {
    "help": SlashCommand("list the commands", "", ""),
    "continue": SlashCommand("resume an unfinished turn", ""),
    "new": SlashCommand("start afresh; the conversation so far is kept (also: /clear)", "[NAME]", ""),
    "sessions": SlashCommand("list the sessions, or switch to one (also: /resume)", "[NAME]"),
    "fork": SlashCommand("continue in a copy of this session; the original stays as it is", "[NAME]"),
    "status": SlashCommand("show the model, and what runs or waits here", "", ""),
    "usage": SlashCommand("show the tokens and cost of this conversation (also: /cost)", "", ""),
    "context": SlashCommand("show the size of the model's context, by kind", "", ""),
    "model": SlashCommand("show the model, or switch to another", "[NAME]", "[NAME]", "*"),
    "compact": SlashCommand("replace older messages with a summary", "", "", "*"),
    "undo": SlashCommand("undo the last turn, and its changes to files that nobody changed since", "[force]", "", "*"),
    "redo": SlashCommand("undo the last /undo", "[force]"),
    "output": SlashCommand("the whole output of a tool: the last one, or N", "[N]"),
    "stop": SlashCommand("end the turn; with all, subagents in the background, too", None, "[all]"),
    "approve": SlashCommand("allow what the agent asks about", None, "[WORD]"),
    "deny": SlashCommand("refuse it", None, "[WORD] [why]"),
    "in": SlashCommand("instruct a character of a text world, and get its answer", None, "NAME words", "**"),
    "pair": SlashCommand("approve a sender; without a code, list the waiting ones", None, "[CODE]", "**"),
    "quit": SlashCommand("leave (also: Ctrl-D)", ""),
}
"""All commands, by name."""
_ALIASES: Final = {"clear": "new", "resume": "sessions", "cost": "usage", "start": "help"}
_MORE: Final = (
    ("/SERVER:PROMPT words", "send a prompt of an MCP server, filled in with the words"),
    ("//word", "send /word to the agent"),
)

_COMMAND: Final = re.compile(r"/([^\W\d_]+)(?:\s+(.*))?", re.DOTALL)


def split_command(text: str) -> tuple[str, str]:
    """The name of a command, in lower case, and the words after it; `/etc/hosts` and `/server:prompt` have no name."""
    match = _COMMAND.fullmatch(text.strip())
    if match is None:
        return "", ""
    name = match[1].lower()
    return _ALIASES.get(name, name), (match[2] or "").strip()


def usages(place: Place) -> dict[str, str]:
    """The usage of each command of a place, by name."""
    found = {name: getattr(command, place) for name, command in COMMANDS.items()}
    return {name: f"/{name} {arguments}".rstrip() for name, arguments in found.items() if arguments is not None}


def help_text(place: Place) -> str:
    """A line for each command of a place."""
    marks = {name: f" {command.who}" if command.who and place == "chats" else "" for name, command in COMMANDS.items()}
    lines = [(usage, f"{COMMANDS[name].does}{marks[name]}") for name, usage in usages(place).items()]
    return "\n".join(f"{usage:22}{does}" for usage, does in (*lines, *_MORE))


def without_escape(text: str) -> str:
    """The message that is meant: `//word` sends `/word`."""
    escaped = text.lstrip()
    return escaped[1:] if escaped.startswith("//") and split_command(escaped[1:])[0] else text


def unknown_command(name: str, names: Iterable[str]) -> str:
    """The answer to a command that isn't one of these."""
    commands = [*names]
    if near := difflib.get_close_matches(name, commands, 1):
        return f"Unknown command: /{name}. Did you mean /{near[0]}?"
    others = "/help lists the commands" if "help" in commands else f"Available: /{', /'.join(commands)}"
    return f"Unknown command: /{name}. {others}; //{name} sends it to the agent."


def usage_text(entries: Sequence[AnyEntry], window: int, estimate: int = 0) -> str:
    """A session's usage in a line, with the model's window; the context is the `estimate` if the model reports none."""
    turns = [entry for entry in entries if isinstance(entry, EndEntry)]
    total = Usage()
    for entry in turns:
        total = total.plus(entry.usage)
    context = turns[-1].last_call_usage.context if turns else 0
    size = f"{context:,}" if context or not estimate else f"about {estimate:,}"
    answers = [entry.message for entry in entries if isinstance(entry, AssistantEntry)]
    parts = [counted(len(turns), "turn"), *usage_parts(total, answers), f"context {size} of {window:,} tokens"]
    return " · ".join(parts)


def context_text(parts: Iterable[RequestPart], window: int) -> str:
    """The size of the next request, in total and by kind of part."""
    sizes = Counter[str]()
    for part in parts:
        sizes[part.role] += part.tokens
    lines = [f"{role}: {tokens:,}" for role, tokens in sizes.items()]
    return "\n".join([f"context: about {sizes.total():,} of {window:,} tokens", *lines])
