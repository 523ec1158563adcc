"""Skills: folders with a SKILL.md that says what it is for, and is read when a task fits (the Agent Skills format)."""

import re
from dataclasses import dataclass
from pathlib import Path

from denizen.config.files import read_file
from denizen.config.trust import SKILL_FOLDERS

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)\n---[ \t]*(\n|$)", re.DOTALL)
_KEY = re.compile(r"([A-Za-z][\w-]*):(?:\s+(.*))?")
_BLOCK = re.compile(r"[|>][-+0-9]*(\s+#.*)?")
_BUILT_IN = Path(__file__).parent / "builtin"
_MOST_BYTES = 64_000  # of a SKILL.md; its front matter stands at the beginning
_MOST_SKILLS = 100
_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1024


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill that can be read: its name, what it is for, and its SKILL.md."""

    name: str
    description: str
    path: Path


def find_skills(
    workspace_dir: Path, workspace: Path, *, trusted: bool, profile: str = ""
) -> tuple[list[Skill], list[str]]:
    """The user's skills, the project's where the user trusts it, and those that every agent of the profile has.

    With notices of what is left out. Of two skills with one name the user's counts, else the first.
    """
    skills: dict[str, Skill] = {}
    notices: list[str] = []
    for path in _paths(workspace_dir / "skills"):
        _take(path, skills, notices)
    for folder in [workspace / name for name in SKILL_FOLDERS] if workspace != workspace_dir else []:
        paths = _paths(folder)
        if paths and not trusted:
            notices.append(f"The skills in {folder} are left out. If you trust this folder: denizen trust {workspace}")
            continue
        for path in paths:
            if path.resolve().is_relative_to(workspace.resolve()):
                _take(path, skills, notices)
            else:
                notices.append(f"The skill {path} is left out: it is a link out of the project.")
    for path in _paths(_BUILT_IN / profile) if profile else ():
        _take(path, skills, notices)
    return [*skills.values()], notices


def read_skill(path: Path) -> Skill:
    """The skill that a SKILL.md describes. Raises OSError or ValueError when it can't be used."""
    text = (read_file(path, _MOST_BYTES) or b"").decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    match = _FRONT_MATTER.match(text)
    if match is None:
        raise ValueError("it doesn't begin with front matter between two lines of ---")
    fields = front_matter(match[1])
    name, description = fields.get("name", ""), fields.get("description", "")
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise ValueError(f"its name must be lower-case words with hyphens, at most {_LONGEST_NAME} characters")
    if not description:
        raise ValueError("it has no description")
    return Skill(name, description[:_LONGEST_DESCRIPTION], path)


def front_matter(text: str) -> dict[str, str]:
    """The fields of a front matter, each on one line: plain, quoted or folded text.

    Read more forgivingly than YAML, as skills are written: `description: Use when: always` is no error. What is nested
    under a field is taken for its text.
    """
    raw: dict[str, list[str]] = {}
    key = ""
    for line in text.split("\n"):
        match = _KEY.fullmatch(line)
        if match:
            key = match[1]
            raw[key] = [match[2] or ""]
        elif key and not line.startswith("#"):
            raw[key].append(line)
    return {key: _scalar(lines) for key, lines in raw.items()}


def _scalar(lines: list[str]) -> str:
    text = " ".join(" ".join(lines[1:] if _BLOCK.fullmatch(lines[0]) else lines).split())
    if text[:1] == '"':
        return re.sub(r"\\(.)", r"\1", text[1:].rpartition('"')[0])
    if text[:1] == "'":
        return text[1:].rpartition("'")[0].replace("''", "'")
    return text if _BLOCK.fullmatch(lines[0]) else re.sub(r"(^| )#.*", "", text)


def _paths(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/SKILL.md"))


def _take(path: Path, skills: dict[str, Skill], notices: list[str]) -> None:
    try:
        skill = read_skill(path)
    except (OSError, ValueError) as error:
        notices.append(f"The skill {path} is left out: {error}.")
        return
    if len(skills) < _MOST_SKILLS:
        skills.setdefault(skill.name, skill)
    else:
        notices.append(f"The skill {path} is left out: there are more than {_MOST_SKILLS}.")
