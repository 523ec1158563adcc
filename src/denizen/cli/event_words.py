"""What happens in a turn, in words for a person."""

import re
from typing import Any

from denizen.cli.text import cut, one_line
from denizen.config.pattern import pattern
from denizen.events import Retry, RunResult, ToolEnd
from denizen.messages import AssistantMessage
from denizen.text.plural import counted, usage_parts

_EXIT_CODE = pattern(r"^\[(exit code [^\]]*)\]$", re.MULTILINE)
_PATCHED = pattern(r"^(?:\+\+\+ (?:b/)?|\*\*\* (?:Add|Update|Delete) File: )(?!/dev/null)([^\t\n]+)", re.MULTILINE)
_SUBJECTS = (
    *("command", "pattern", "url", "query", "target", "name", "path", "args", "text"),
    *("question", "label", "outputs"),
)
"""Arguments that say best what a call is about."""


def call_summary(name: str, args: dict[str, Any]) -> str:
    """A call in one short line, the tool and what it is about: `grep TODO in src`."""
    about = next((str(args[key]) for key in _SUBJECTS if args.get(key)), "")
    if "patch" in args:
        about = ", ".join(dict.fromkeys(_PATCHED.findall(str(args["patch"]))))
    if "pattern" in args and args.get("path") not in {None, "", "."}:
        about += f" in {args['path']}"
    if args.get("start") not in {None, 0, 1}:
        about += f" from {args['start']}"
    return cut(one_line(f"{name} {args.get('action', args.get('what', ''))} {about}"), 120)


def tool_ending(event: ToolEnd) -> tuple[str, str]:
    """How long a tool took and why it failed, ` · 12 ms: exit code 1`, and its output without what this says."""
    output, reason = event.text, ""
    *_, code = [None, *_EXIT_CODE.finditer(output)]
    if code:
        output = output[: code.start()] + output[code.end() :]
    if event.is_error:
        reason = f": {code[1] if code else one_line(event.summary)}"
        output = output if code else output.partition("\n")[2]
    return f" · {duration(event.duration_ms / 1000)}{reason}", output


def summary(result: RunResult, seconds: float) -> str:
    """How a turn ended, after how many iterations, and what it took."""
    answers = [message for message in result.messages if isinstance(message, AssistantMessage)]
    usage = usage_parts(result.usage, answers)
    used = [result.stop_reason.replace("_", " "), counted(result.iterations, "iteration"), *usage]
    if result.retries:
        used.append(counted(result.retries, "retry"))
    return " · ".join([*used, duration(seconds)])


def duration(seconds: float) -> str:
    """A time in words: `12 ms`, `3.4 s`, `2 min 5 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


def retry_words(event: Retry, asked: str) -> str:
    """Why a call is made again, and with what; `asked` is the model that was asked last."""
    profile, words = "" if event.profile_id == "default" else event.profile_id, event.words
    parts = (words, event.model, profile)
    if asked and event.model and event.model != asked:
        words = words.removeprefix(f"{asked}: ").replace("trying again", f"going on with {event.model}")
        parts = (f"{asked}: {words}", profile)
    return one_line(" · ".join(filter(None, parts)))
