"""A conversation as Markdown, for reading."""

import json
import re
from collections.abc import Iterator, Sequence

from denizen.cli.home import short_name
from denizen.cli.text import shorten
from denizen.cli.usage import usage_parts
from denizen.entries import (
    AnswerEntry,
    AnyEntry,
    AssistantEntry,
    CompactionEntry,
    EndEntry,
    ParkedEntry,
    SessionEntry,
    SystemEntry,
    ToolEntry,
    UserEntry,
)
from denizen.messages import AssistantMessage, Image, Text, Thinking, ToolCall, ToolResult, UserPart

_BACKTICKS = re.compile(r"`+")


def markdown(entries: Sequence[AnyEntry], *, whole: bool) -> Iterator[str]:
    """Paragraphs, one for everything that was said or done; long results are shortened unless the `whole` is wanted."""
    for entry in entries:
        match entry:
            case SessionEntry():
                yield f"# {short_name(entry.key)}\n\n{entry.at:%Y-%m-%d %H:%M} · {entry.workspace}"
            case UserEntry(message=message):
                yield f"## User\n\n{_words(message.content)}"
            case AssistantEntry(message=message):
                yield from _answer(message, whole=whole)
            case ToolEntry(message=result):
                yield _result(result, whole=whole)
            case _:
                yield from _event(entry)


def _answer(message: AssistantMessage, *, whole: bool) -> Iterator[str]:
    yield f"## Agent{f' ({message.model})' if message.model else ''}"
    for part in message.content:
        match part:
            case Text(text=text) if text.strip():
                yield text.strip()
            case Thinking(text=text) if whole and text.strip():
                yield "\n".join(f"> {line}" for line in text.strip().split("\n"))
            case ToolCall():
                yield f"**{part.name}**\n{_fenced(_shown(_arguments(part), whole=whole))}"
            case _:
                pass


def _arguments(call: ToolCall) -> str:
    """The arguments as they read best: one to a line, long texts as they are."""
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in call.args.items()
    )


def _result(result: ToolResult, *, whole: bool) -> str:
    return f"{'error' if result.is_error else 'result'}:\n{_fenced(_shown(_words(result.content), whole=whole))}"


def _event(entry: AnyEntry) -> Iterator[str]:
    match entry:
        case CompactionEntry():
            yield f"*Context made smaller.*\n\n{entry.summary}"
        case SystemEntry(text=text):
            yield f"*System:* {text}"
        case ParkedEntry(question=question):
            yield f"*Parked:* {question}"
        case AnswerEntry():
            yield f"*Answer:* {'yes' if entry.allow else 'no'} {entry.text}".rstrip()
        case EndEntry():
            parts = [entry.stop_reason.replace("_", " "), *usage_parts(entry.usage), entry.error]
            yield f"*{' · '.join(filter(None, parts))}*"
        case _:
            pass


def _words(parts: Sequence[UserPart]) -> str:
    shown = [
        f"[{part.media_type}, {len(part.data):,} bytes]" if isinstance(part, Image) else part.text for part in parts
    ]
    return "\n\n".join(shown)


def _shown(text: str, *, whole: bool) -> str:
    return text if whole else shorten(text, lines=12, characters=1_000, how="--all shows them")


def _fenced(text: str) -> str:
    """The text between fences that are longer than any in it."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
