"""Definitions of subagents: files `agents/NAME.md`, whose front matter says what each is for, and whose text is its
prompt.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from denizen.config.trust import AGENT_FOLDERS
from denizen.prompt.definitions import find_definitions, read_fields
from denizen.trusted.session_files import SessionFiles

_MAX_DESCRIPTION_CHARS = 500  # characters of a description, which every request holds

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
    files = SessionFiles(home)
    return find_definitions(
        "subagent",
        "*.md",
        lambda path, _: read_agent(path, files.counted([path])[0]),
        home / "agents",
        project=workspace,
        folders=AGENT_FOLDERS,
        trusted=trusted,
    )


def read_agent(path: Path, text: str | None = None) -> AgentFile:
    """The definition that a file holds, or the `text` that counts. Raises OSError or ValueError if it is wrong.

    The files of other programs are read, too: what those name in further fields is passed over, and so is their model,
    unless it is `provider:model`.
    """
    fields, prompt = read_fields(path, text)
    tools: Any = fields.get("tools")
    if isinstance(tools, str):
        fields["tools"] = [name.strip() for name in tools.split(",") if name.strip()]
    if "model" in fields and ":" not in str(fields["model"]):
        del fields["model"]
    made = msgspec.convert({"name": path.stem, **fields, "prompt": prompt.strip()}, AgentFile, strict=False)
    described = " ".join(made.description.split())[:_MAX_DESCRIPTION_CHARS]
    return msgspec.structs.replace(made, description=described)
