"""Definitions of subagents: files `agents/NAME.md`, whose front matter says what each is for, and whose text is its
prompt.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from denizen.config.trust import AGENT_FOLDERS
from denizen.prompt.skills import read_fields

_MOST = 50
_MOST_DESCRIBED = 500  # characters of a description, which every request holds

_Name = Annotated[str, msgspec.Meta(pattern="^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]
_Words = Annotated[str, msgspec.Meta(min_length=1)]


class AgentFile(msgspec.Struct, frozen=True, kw_only=True):
    """A definition: the tools it may use (None: all), its model (empty: the agent's), its limits, and its prompt."""

    name: _Name
    description: _Words
    tools: Sequence[str] | None = None
    model: str = ""
    iterations: Annotated[int, msgspec.Meta(ge=1)] | None = None
    minutes: Annotated[float, msgspec.Meta(gt=0, le=60)] | None = None
    prompt: str = ""


def find_agents(home: Path, workspace: Path, *, trusted: bool) -> tuple[dict[str, AgentFile], list[str]]:
    """The user's definitions by name, and the project's where the user trusts it; with notices of what is left out.

    Of two with one name the user's counts, else the first.
    """
    paths, notices = sorted((home / "agents").glob("*.md")), list[str]()
    for folder in [workspace / name for name in AGENT_FOLDERS]:
        found = sorted(folder.glob("*.md"))
        if found and not trusted:
            notices.append(
                f"The subagents in {folder} are left out. If you trust this folder: denizen trust {workspace}"
            )
            continue
        for path in found:
            if path.resolve().is_relative_to(workspace.resolve()):
                paths.append(path)
            else:
                notices.append(f"The subagent {path} is left out: it is a link out of the project.")
    agents: dict[str, AgentFile] = {}
    for path in paths:
        try:
            made = read_agent(path)
        except (OSError, ValueError) as error:
            notices.append(f"The subagent {path} is left out: {error}.")
            continue
        if len(agents) < _MOST:
            agents.setdefault(made.name, made)
        else:
            notices.append(f"The subagent {path} is left out: there are more than {_MOST}.")
    return agents, notices


def read_agent(path: Path) -> AgentFile:
    """The definition that a file holds. Raises OSError or ValueError where it is wrong.

    The files of other programs are read, too: what those name in further fields is passed over, and so is their model,
    unless it is `provider:model`.
    """
    fields, text = read_fields(path)
    tools: Any = fields.get("tools")
    if isinstance(tools, str):
        fields["tools"] = [name.strip() for name in tools.split(",") if name.strip()]
    if "model" in fields and ":" not in str(fields["model"]):
        del fields["model"]
    made = msgspec.convert({"name": path.stem, **fields, "prompt": text.strip()}, AgentFile, strict=False)
    described = " ".join(made.description.split())[:_MOST_DESCRIBED]
    return msgspec.structs.replace(made, description=described)
