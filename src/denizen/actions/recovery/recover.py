"""Calls that a model wrote into its text, because no server made structure of them."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from denizen.actions.recovery.scanner import OfferedTools, Tools
from denizen.config.pattern import pattern
from denizen.messages import ToolCall
from denizen.text.special_tokens import scrub

RECOVERED: Final = "recovered-"
"""How the ids of recovered calls begin: their provider knows nothing of them."""

_THOUGHT_OR_TOKEN: Final = pattern(
    r"[<\[|◁｜](?:(?<=<)/?(?:think|thought|reasoning|seed:|mm:)|(?<=<)[|｜]|(?<=\|)>|(?<=\[)(?:/?THINK|BEGIN)|(?<=[◁｜]))"
)
_CALL: Final = pattern(
    r"<[/\w]|>>>|\[TOOL|[\[{]\s{0,99}[{\[\"']|^[ \t]{0,9}\[?[^\W\d][\w.-]{0,127}\s?\(|\bto=functions\."
    r"|(?:call|tool_code|tool_use|TOOL|TOOL_CALL|Action)\s?:",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a text holds: calls, the words that are left for the person, and what the model thought.

    `wordings` are the calls as they are written, from the tools' names on. `broken` says what is wrong with others.
    """

    calls: list[ToolCall] = field(default_factory=list)
    text: str = ""
    thinking: str = ""
    wordings: list[str] = field(default_factory=list, compare=False)
    broken: list[str] = field(default_factory=list, compare=False)


def may_hold_calls(text: str, names: Iterable[str]) -> bool:
    """Whether it is worth looking for thoughts and for calls of tools of these names: a quick no is sure."""
    if "assistant" in text and text.lstrip().startswith(("analysis", "commentary", "assistant")):
        return True
    if not ("<" in text or "{" in text or "(" in text or "[" in text or "｜" in text or "◁" in text):
        return False
    if _THOUGHT_OR_TOKEN.search(text):
        return True
    return any(name in text for name in names) and _CALL.search(text) is not None


def recover_calls(text: str, tools: Tools) -> Recovered:
    """The calls that `text` makes of `tools`, in any form that models write, and the rest of the text.

    `tools` are ours, or mappings with `name` and `parameters` (a JSON schema). Only they are called; what is in
    quotation marks, in code, or in another's turn isn't a call (docs/recovery.md). Arguments have the types that the
    schema wants. The same text gives the same calls, with the same ids. The work is linear in the length of the text;
    nothing is raised.
    """
    from denizen.actions.recovery.meaning import read_meaning

    meaning = read_meaning(text, OfferedTools(tools))
    stem = RECOVERED + hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return Recovered(
        [ToolCall(f"{stem}-{number}", call.name, call.args or {}) for number, call in enumerate(meaning.calls, 1)],
        scrub("".join(meaning.words)).strip(),
        "\n".join(meaning.thoughts).strip(),
        [call.wording for call in meaning.calls],
        [*meaning.broken],
    )
