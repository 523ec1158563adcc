"""Which skills an agent has, and what their front matter may look like."""

from pathlib import Path

import pytest

from denizen.prompt.skills import Skill, find_skills, read_skill

DATA = Path(__file__).parent.parent / "data" / "skills"


def write(folder: Path, name: str, text: str | None = None) -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(f"---\nname: {name}\ndescription: What {name} does.\n---\n" if text is None else text)
    return path


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "own"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def names(own: Path, project: Path, *, trusted: bool = True) -> list[str]:
    skills, notices = find_skills(own, project, trusted=trusted)
    assert notices == []
    return [skill.name for skill in skills]


def test_the_users_skills_are_found(own: Path) -> None:
    path = write(own / "skills", "deploy")
    assert find_skills(own, own, trusted=False) == ([Skill("deploy", "What deploy does.", path)], [])


def test_without_skills_there_is_nothing(own: Path, project: Path) -> None:
    assert names(own, project) == []


def test_a_trusted_projects_skills_come_after_the_users(own: Path, project: Path) -> None:
    write(project / "skills", "three")
    write(project / ".claude" / "skills", "two")
    write(project / ".denizen" / "skills", "one")
    write(own / "skills", "zero")
    assert names(own, project) == ["zero", "one", "two", "three"]


def test_a_projects_skills_are_left_out_until_it_is_trusted(own: Path, project: Path) -> None:
    write(project / "skills", "deploy")
    skills, notices = find_skills(own, project, trusted=False)
    assert skills == []
    assert f"denizen trust {project}" in notices[0]


def test_a_project_cannot_replace_the_users_skill(own: Path, project: Path) -> None:
    mine = write(own / "skills", "deploy")
    write(project / "skills", "deploy")
    skills, _ = find_skills(own, project, trusted=True)
    assert [skill.path for skill in skills] == [mine]


def test_a_projects_skill_that_is_a_link_out_of_it_is_left_out(own: Path, project: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", "deploy")
    (project / "skills").symlink_to(tmp_path / "elsewhere")
    skills, notices = find_skills(own, project, trusted=True)
    assert skills == []
    assert "a link out of the project" in notices[0]


def test_the_users_skill_may_be_a_link(own: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", "deploy")
    own.mkdir()
    (own / "skills").symlink_to(tmp_path / "elsewhere")
    assert names(own, own) == ["deploy"]


def test_a_skill_that_cannot_be_used_is_left_out_with_a_notice(own: Path) -> None:
    write(own / "skills", "broken", "Just text.")
    write(own / "skills", "whole")
    skills, notices = find_skills(own, own, trusted=False)
    assert [skill.name for skill in skills] == ["whole"]
    assert "broken/SKILL.md is left out: it doesn't begin with front matter" in notices[0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "front matter"),
        ("---\nname: a\ndescription: b\n", "front matter"),
        ("---\ndescription: b\n---\n", "name"),
        ("---\nname: Two Words\ndescription: b\n---\n", "name"),
        ("---\nname: a--b\ndescription: b\n---\n", "name"),
        (f"---\nname: {'a' * 65}\ndescription: b\n---\n", "name"),
        ("---\nname: a\n---\n", "description"),
        ("---\nname: a\ndescription:\nlicense: MIT\n---\n", "description"),
    ],
)
def test_what_a_skill_lacks_is_reported(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_skill(write(tmp_path, "skill", text))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("description: Puts it online.", "Puts it online."),
        ("description:    Puts it online.   # soon", "Puts it online."),
        ("description: Issue #7 of C#", "Issue"),
        ("description: Use when: asked to deploy", "Use when: asked to deploy"),
        ('description: "Puts \\"it\\": online # now"', 'Puts "it": online # now'),
        ("description: 'It''s: online'", "It's: online"),
        ("description: >\n  Puts it\n  online.\n\n  Now.", "Puts it online. Now."),
        ("description: >-\n  Puts it\n  online # now.", "Puts it online # now."),
        ("description: |\n  Puts it\n    online.", "Puts it online."),
        ("description: Puts it\n  online.", "Puts it online."),
        ('description:\n  "Puts it\n  online."', "Puts it online."),
        (
            "# a comment\ndescription: Puts it online.\nmetadata:\n  description: other\n  tags: [a, b]",
            "Puts it online.",
        ),
        ("license: MIT\r\ndescription: Puts it online.\r", "Puts it online."),
    ],
)
def test_descriptions_are_read_as_people_write_them(tmp_path: Path, written: str, read: str) -> None:
    path = write(tmp_path, "deploy", f"---\nname: deploy\n{written}\n---\n# Deploy\n\nname: other\n---\n")
    assert read_skill(path) == Skill("deploy", read, path)


def test_a_description_is_cut_at_the_formats_limit(tmp_path: Path) -> None:
    path = write(tmp_path, "deploy", f"---\nname: deploy\ndescription: {'a' * 2_000}\n---\n")
    assert len(read_skill(path).description) == 1024


def test_a_hundred_skills_are_offered_and_the_rest_reported(own: Path) -> None:
    for number in range(102):
        write(own / "skills", f"skill-{number:03}")
    skills, notices = find_skills(own, own, trusted=False)
    assert len(skills) == 100
    assert ["skill-100" in notices[0], "skill-101" in notices[1]] == [True, True]


# Skills that come with Denizen


def test_a_coder_knows_how_to_investigate_and_an_assistant_does_not(own: Path, project: Path) -> None:
    [skill], notices = find_skills(own, project, trusted=False, profile="coder")
    assert (skill.name, notices) == ("investigate", [])
    assert find_skills(own, project, trusted=False, profile="assistant") == ([], [])


def test_it_goes_from_the_tree_to_the_symbol(own: Path, project: Path) -> None:
    [skill], _ = find_skills(own, project, trusted=False, profile="coder")
    text = skill.path.read_text("utf-8")
    steps = ["$(view .)", "$(view PATH --types-only)", "$(analyze complexity PATH)", "$(view PATH/Symbol)"]
    assert sorted(steps, key=text.index) == steps


def test_the_users_own_way_to_investigate_counts(own: Path, project: Path) -> None:
    mine = write(own / "skills", "investigate")
    [skill], _ = find_skills(own, project, trusted=False, profile="coder")
    assert skill.path == mine
