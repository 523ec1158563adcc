"""Skills that changed since they were first used are left out until the user trusts them."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from denizen.prompt import Skill, SkillPins
from denizen.prompt.skills import read_skill
from denizen.prompt.workspace import WorkspacePrompt
from denizen.trusted.session_files import SessionFiles


@pytest.fixture
def pins(tmp_path: Path) -> SkillPins:
    return SkillPins(tmp_path / "home")


@pytest.fixture
def skill(tmp_path: Path) -> Skill:
    folder = tmp_path / "skills" / "deploy"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: deploy\ndescription: Put it online.\n---\n")
    (folder / "scripts" / "run.sh").write_text("echo one\n")
    (folder / "picture.png").write_bytes(b"\0\1")
    return read_skill(folder / "SKILL.md")


def test_a_skill_is_new_until_it_is_used_and_then_stays_as_it_is(pins: SkillPins, skill: Skill) -> None:
    assert pins.state(skill) == "new"
    assert pins.admit([skill]) == ([skill], [])
    assert pins.state(skill) == "new"
    assert pins.use([skill]) == ([skill], [])
    assert pins.state(skill) == "same"
    assert pins.use([skill]) == ([skill], [])


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a line": (lambda folder: (folder / "scripts/run.sh").write_text("echo two\n"), "-echo one\n+echo two\n"),
    "a file more": (
        lambda folder: (folder / "more.sh").write_text("evil\n"),
        "--- (new)\n+++ more.sh\n@@ -0,0 +1 @@\n+evil\n",
    ),
    "a file less": (lambda folder: (folder / "scripts/run.sh").unlink(), "--- scripts/run.sh\n+++ (gone)\n"),
    "an empty file": (lambda folder: (folder / "empty").touch(), "empty: new\n"),
    "bytes": (lambda folder: (folder / "picture.png").write_bytes(b"\0\2"), "picture.png: changed\n"),
    "a link": (lambda folder: (folder / "link").symlink_to("/etc/passwd"), "+link to /etc/passwd\n"),
    "a linked folder": (lambda folder: (folder / "dir").symlink_to("scripts"), "+link to scripts\n"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_leaves_it_out_and_is_shown(pins: SkillPins, skill: Skill, change: str) -> None:
    pins.use([skill])
    make, shown = CHANGES[change]
    make(skill.path.parent)
    admitted, [notice] = pins.use([skill])
    assert admitted == []
    assert "denizen skills check deploy" in notice
    assert shown in pins.difference(skill)


def test_a_linked_file_that_changes_leaves_it_out_and_is_not_copied(
    pins: SkillPins, skill: Skill, tmp_path: Path
) -> None:
    (tmp_path / "shared.sh").write_text("echo one\n")
    (skill.path.parent / "shared.sh").symlink_to(tmp_path / "shared.sh")
    pins.use([skill])
    (tmp_path / "shared.sh").write_text("echo two\n")
    assert pins.use([skill])[0] == []
    assert "+that holds " in pins.difference(skill)
    assert "echo two" not in pins.difference(skill)
    pins.pin(skill)
    assert pins.use([skill]) == ([skill], [])
    assert pins.difference(skill) == ""


def test_a_linked_folder_is_pinned_with_what_it_holds_and_is_not_copied(
    pins: SkillPins, skill: Skill, tmp_path: Path
) -> None:
    shared = tmp_path / "shared" / "below"
    shared.mkdir(parents=True)
    (shared / "run.sh").write_text("echo one\n")
    (shared / "circle").symlink_to(tmp_path / "shared")
    (skill.path.parent / "lib").symlink_to(tmp_path / "shared")
    pins.use([skill])
    assert pins.use([skill]) == ([skill], [])
    (shared / "run.sh").write_text("echo two\n")
    assert pins.use([skill])[0] == []
    assert pins.difference(skill) == "lib/below/run.sh: changed\n"


def test_what_running_its_scripts_leaves_is_no_change(pins: SkillPins, skill: Skill) -> None:
    pins.use([skill])
    (skill.path.parent / "scripts" / "__pycache__").mkdir()
    (skill.path.parent / "scripts" / "__pycache__" / "run.pyc").touch()
    assert pins.state(skill) == "same"


def test_skills_of_one_name_in_two_places_are_two(pins: SkillPins, skill: Skill, tmp_path: Path) -> None:
    pins.use([skill])
    skill.path.parent.rename(tmp_path / "elsewhere")
    assert pins.state(read_skill(tmp_path / "elsewhere" / "SKILL.md")) == "new"


def test_a_damaged_record_counts_as_another_one(pins: SkillPins, skill: Skill, tmp_path: Path) -> None:
    pins.use([skill])
    [record] = (tmp_path / "home" / "skills").iterdir()
    assert record.stat().st_mode & 0o777 == 0o600
    record.write_text("{")
    assert pins.state(skill) == "changed"
    assert f"{record} can't be read" in pins.difference(skill)
    pins.pin(skill)
    assert pins.state(skill) == "same"


def test_a_folder_that_is_too_large_to_check_is_left_out(pins: SkillPins, skill: Skill) -> None:
    with (skill.path.parent / "large").open("wb") as file:
        file.truncate(20_000_001)
    admitted, [notice] = pins.use([skill])
    assert admitted == []
    assert "more than 20,000,000 bytes" in notice


def test_a_long_text_is_compared_though_not_kept(pins: SkillPins, skill: Skill) -> None:
    (skill.path.parent / "long.md").write_text("x" * 200_000)
    pins.use([skill])
    (skill.path.parent / "long.md").write_text("y" * 200_000)
    assert pins.difference(skill) == "long.md: changed\n"


def test_what_comes_with_denizen_changes_with_it(pins: SkillPins, skill: Skill, tmp_path: Path) -> None:
    own = Skill(skill.name, skill.description, skill.path, "built-in")
    assert pins.use([own]) == ([own], [])
    assert not (tmp_path / "home").exists()


def test_an_agent_that_runs_notices_the_change_with_the_next_prompt(
    pins: SkillPins, skill: Skill, tmp_path: Path
) -> None:
    prompt = WorkspacePrompt(
        own_folder=tmp_path,
        workspace=tmp_path,
        session_files=SessionFiles(tmp_path),
        model="m",
        tools=["read"],
        skills=[skill],
        pins=pins,
        identity="You.",
    )
    assert "Put it online." in prompt.build(datetime.now(UTC)).text
    (skill.path.parent / "more.sh").write_text("evil\n")
    made = prompt.build(datetime.now(UTC))
    assert "Put it online." not in made.text
    assert "deploy is left out" in made.notices[0]
