"""Slash commands, wherever they are typed: how to recognise one, and the answer to an unknown one."""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Final

from denizen.entries import AnyEntry, AssistantEntry, EndEntry
from denizen.messages import Usage
from denizen.text.plural import counted, usage_parts

_COMMAND: Final = re.compile(r"/([^\W\d_]+)(?:\s+(.*))?", re.DOTALL)


def split_command(text: str) -> tuple[str, str]:
    """The name of a command, in lower case, and the words after it; `/etc/hosts` and `/server:prompt` have no name."""
    match = _COMMAND.fullmatch(text.strip())
    return (match[1].lower(), (match[2] or "").strip()) if match else ("", "")


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
