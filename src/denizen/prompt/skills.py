"""Skills: folders with a SKILL.md that says what it is for, and is read when a task fits (the Agent Skills format)."""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from denizen.config.files import read_file
from denizen.config.trust import SKILL_FOLDERS

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)\n---[ \t]*(\n|$)", re.DOTALL)
_PLAIN_FIELD = re.compile(r"""^([A-Za-z][\w-]*):[ \t]+([^\s"'|>[{&*!#].*)$""", re.MULTILINE)
_BUILT_IN = Path(__file__).parent / "builtin"
_MAX_BYTES = 64_000  # of a SKILL.md; its front matter is at the beginning
_MAX_SKILLS = 100
_MAX_NAME = 64
_MAX_DESCRIPTION = 1024


Origin = Literal["user", "project", "built-in"]
"""Whose a skill is."""


@dataclass(frozen=True, slots=True)
class Skill:
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
    paths: list[tuple[Origin, Path]] = [("user", path) for path in _paths(workspace_dir / "skills")]
    notices: list[str] = []
    for folder in [workspace / name for name in SKILL_FOLDERS] if workspace != workspace_dir else []:
        found = _paths(folder)
        if found and not trusted:
            notices.append(f"The skills in {folder} are left out. If you trust this folder: denizen trust {workspace}")
            continue
        for path in found:
            if path.resolve().is_relative_to(workspace.resolve()):
                paths.append(("project", path))
            else:
                notices.append(f"The skill {path} is left out: it is a link out of the project.")
    skills: dict[str, Skill] = {}
    if profile:
        paths.extend(("built-in", path) for path in sorted(_BUILT_IN.glob(f"{profile}/*/SKILL.md")))
    for origin, path in paths:
        try:
            skill = replace(read_skill(path), origin=origin)
        except (OSError, ValueError) as error:
            notices.append(f"The skill {path} is left out: {error}.")
            continue
        if len(skills) < _MAX_SKILLS:
            skills.setdefault(skill.name, skill)
        else:
            notices.append(f"The skill {path} is left out: there are more than {_MAX_SKILLS}.")
    return [*skills.values()], notices


def read_skill(path: Path) -> Skill:
    """The skill that a SKILL.md describes. Raises OSError or ValueError when it can't be used."""
    fields = {name: value for name, value in read_fields(path)[0].items() if isinstance(value, str)}
    name, description = fields.get("name", ""), " ".join(fields.get("description", "").split())
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
        raise ValueError(f"its name must be lower-case words with hyphens, at most {_MAX_NAME} characters")
    if not description:
        raise ValueError("it has no description")
    return Skill(name, description[:_MAX_DESCRIPTION], path)


def read_fields(path: Path) -> tuple[dict[str, Any], str]:
    """The front matter of a file, and the text below it. Raises OSError or ValueError where it has none."""
    text = (read_file(path, _MAX_BYTES) or b"").decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    match = _FRONT_MATTER.match(text)
    if match is None:
        raise ValueError("it doesn't begin with front matter between two lines of ---")
    return front_matter(match[1]), text[match.end() :]


def front_matter(text: str) -> dict[str, Any]:
    """The fields of a YAML front matter: text, lists and dicts. Raises ValueError where it isn't YAML.

    It is often written with what YAML forbids, as in `description: Use when: always`; such values are taken as they
    are.
    """
    import yaml  # it takes 20 ms

    def parse(text: str) -> object:
        return yaml.load(text, yaml.BaseLoader)  # noqa: S506 - it makes strings, lists and dicts only

    try:
        try:
            fields = parse(text)
        except yaml.YAMLError:
            fields = parse(_PLAIN_FIELD.sub(lambda field: f"{field[1]}: {json.dumps(field[2].rstrip())}", text))
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"its front matter isn't YAML ({str(error).splitlines()[0]})") from error
    return {str(name): value for name, value in fields.items()} if isinstance(fields, dict) else {}


def _paths(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/SKILL.md"))
