"""Skills: folders with a SKILL.md that says what it is for, and is read when a task fits (the Agent Skills format)."""

from pathlib import Path

import msgspec

from denizen.config.pattern import pattern
from denizen.config.trust import SKILL_FOLDERS
from denizen.prompt.definitions import Origin, find_definitions, read_fields

_NAME = pattern(r"[a-z0-9]+(-[a-z0-9]+)*")
_BUILT_IN = Path(__file__).parent / "builtin"
_MAX_NAME_CHARS = 64
_MAX_DESCRIPTION_CHARS = 1024


class Skill(msgspec.Struct, frozen=True):
    """A skill that can be read: its name, what it is for, its SKILL.md, and whose it is."""

    name: str
    description: str
    path: Path
    origin: Origin = "user"


def find_skills(
    workspace_dir: Path, workspace: Path, *, trusted: bool, profile: str = ""
) -> tuple[list[Skill], list[str]]:
    """The user's skills, the project's where the user trusts it, and those that every agent of the profile has.

    With notices of what is left out. Of two skills with one name the user's counts, else the first. The profile `*` is
    any.
    """
    built_in = sorted(_BUILT_IN.glob(f"{profile}/*/SKILL.md")) if profile else ()
    skills, notices = find_definitions(
        "skill",
        "*/SKILL.md",
        read_skill,
        workspace_dir / "skills",
        project=workspace,
        folders=SKILL_FOLDERS if workspace != workspace_dir else (),
        trusted=trusted,
        built_in=built_in,
    )
    return [*skills.values()], notices


def read_skill(path: Path, origin: Origin = "user") -> Skill:
    """The skill that a SKILL.md describes. Raises OSError or ValueError when it can't be used."""
    fields = {name: value for name, value in read_fields(path)[0].items() if isinstance(value, str)}
    name, description = fields.get("name", ""), " ".join(fields.get("description", "").split())
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME_CHARS:
        raise ValueError(f"its name must be lower-case words with hyphens, at most {_MAX_NAME_CHARS} characters")
    if not description:
        raise ValueError("it has no description")
    return Skill(name, description[:_MAX_DESCRIPTION_CHARS], path, origin)
