"""The system prompt: five sections, in order, from explicit inputs (decisions, "The system prompt")."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from denizen.config.pattern import pattern
from denizen.ports import ToolGuide
from denizen.prompt import texts
from denizen.prompt.bootstrap import PromptFile
from denizen.prompt.skills import Skill

_OUR_TAGS = pattern(r"<(?=\s*/?\s*(?:identity|bootstrap-files|file|tools|mcp-server|safety|runtime)\b)", re.IGNORECASE)

_POINT = pattern(r"\n- .*(?:\n  .*)*")
_NAME = pattern(r"`(\w+)`")
_READERS = {"read", "view", "bash"}
"""Tools that can read a skill."""


def build_prompt(
    *,
    files: Sequence[PromptFile],
    skills: Sequence[Skill],
    tools: Sequence[str],
    guides: Sequence[ToolGuide] = (),
    started: datetime,
    platform: str,
    workspace: Path,
    model: str,
    identity: str = texts.IDENTITY,
    instructions: str = "",
    listed: bool = True,
) -> str:
    """The prompt of a session: the same inputs give the same bytes, so that providers can cache it.

    `identity` says who the agent is, unless `instructions` do; points of it that name a tool in backticks are only for
    agents that have the tool. `started` is when the session began, `tools` the tools' names, `platform` the
    system and machine (`linux x86_64`). `listed` is False if the action format names the tools.
    The current time has no place in it: it goes with the user's messages.
    """
    runtime = {
        "Session started": f"{started.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        "Platform": platform,
        "Working directory": str(workspace),
        "Model": model,
    }
    bootstrap = [texts.PROJECT] if any(file.from_project for file in files) else []
    for file in files:
        source = ' from="project"' if file.from_project else ""
        bootstrap.append(f'<file path="{_attribute(file.path)}"{source}>\n{_quoted(file.text)}\n</file>')
    usage: list[str] = []
    if tools and listed:
        usage.append("\n".join(["You have access to the following tools:", *(f"- {_line(name)}" for name in tools)]))
    if tools:
        usage.append(_fitting(texts.TOOLS, tools))
    if guides:
        said = (
            f'<mcp-server name="{_attribute(each.server)}">\n{_quoted(each.text)}\n</mcp-server>' for each in guides
        )
        usage += [texts.GUIDES, *said]
    if skills and _READERS.intersection(tools):
        lines = [texts.SKILLS]
        for skill in skills:
            path = skill.path.relative_to(workspace) if skill.path.is_relative_to(workspace) else skill.path
            lines.append(f"- {skill.name}: {_line(skill.description)} ({_line(str(path))})")
        usage.append("\n".join(lines))
    sections = {
        "identity": instructions or _fitting(identity, tools),
        "bootstrap-files": "\n\n".join(bootstrap),
        "tools": "\n\n".join(usage),
        "safety": texts.SAFETY if tools else texts.SAFETY_WITHOUT_TOOLS,
        "runtime": "\n".join(f"- {name}: {_line(value)}" for name, value in runtime.items()),
    }
    if not tools:
        del sections["tools"]
    return "\n\n".join("\n".join(filter(None, [f"<{name}>", text, f"</{name}>"])) for name, text in sections.items())


def _fitting(text: str, tools: Sequence[str]) -> str:
    """The text without the points that name a tool which isn't there."""
    return _POINT.sub(lambda point: point[0] if {*_NAME.findall(point[0])} <= {*tools} else "", text)


def _quoted(text: str) -> str:
    """Text that can't end its section, or begin another."""
    return _OUR_TAGS.sub("&lt;", text)


def _line(text: str) -> str:
    """Text that stays on its line."""
    return _quoted(" ".join("".join(c if c.isprintable() else " " for c in text).split()))


def _attribute(text: str) -> str:
    """Text that stays between its quotation marks."""
    return _line(text).replace('"', "&quot;")
