"""A character's files: what it is told of itself, what it learns, and what it answers without thinking."""

import re
from pathlib import Path

import pytest

from denizen.worlds.moo.character import MAX_ANSWERS_PER_MINUTE, RULE_PAUSE_S, Character, Engagement
from denizen.worlds.moo.server_text import ServerLine
from denizen.worlds.moo.settings import MooSettings
from denizen.worlds.moo.soul import MAX_LEARNED_CHARS, MAX_LINKED_CHARS, SoulRule, patch_soul, read_soul, rule_problem

SOUL = """\
# Name
Mason

# Mission
Build huts.

# Persona
Gruff.

## Context
See [the glossary](glossary.md) and [a page](https://example.com/x.md).
```
# no heading
```

## Tools
- dig
- `describe`

## Rules of Engagement
- `^You are cold` -> wear coat
- !`(?i)come here` -> go north
- hello -> say Hello.
- `(` -> look
- `.` -> look

## Verb Mapping
- go home -> teleport #31

## Response Format
Short.

## Habits
Sings.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "group" / "mason"
    folder.mkdir(parents=True)
    (folder / "SOUL.md").write_text(SOUL)
    (folder / "glossary.md").write_text("A hut is small.\n")
    return folder


def test_each_section_is_read_and_unknown_ones_belong_to_the_context(folder: Path) -> None:
    soul = read_soul(folder)
    assert (soul.name, soul.mission, soul.persona, soul.response_format) == ("Mason", "Build huts.", "Gruff.", "Short.")
    assert soul.tools == ["dig", "describe"]
    assert soul.verbs == [("go home", "teleport #31")]
    assert "# no heading" in soul.context
    assert soul.context.endswith("## Habits\nSings.")


def test_links_to_local_texts_are_read_in_their_place_and_no_others(folder: Path) -> None:
    (folder.parent.parent / "secret.txt").write_text("private")
    (folder / "SOUL.md").write_text("## Context\n[a](glossary.md) [b](../../secret.txt) [c](https://example.com/x.md)")
    soul = read_soul(folder)
    assert soul.context == "A hut is small. [b](../../secret.txt) [c](https://example.com/x.md)"
    assert len(soul.problems) == 1


def test_links_leave_the_agents_directory_only_within_a_group(folder: Path) -> None:
    (folder.parent / "lore.md").write_text("Long ago.")
    (folder / "SOUL.md").write_text("## Context\n[a](../lore.md)")
    assert read_soul(folder).context == "[a](../lore.md)"
    (folder.parent / "group.toml").touch()
    assert read_soul(folder).context == "Long ago."
    (folder.parent / "group.toml").unlink()
    (folder.parent / "baseline.md").write_text("See [b](lore.md).")
    assert read_soul(folder).context == "See Long ago..\n\nLong ago."


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"x" * (MAX_LINKED_CHARS + 1), "more than 40,000 characters"), (b"\xff", "is not UTF-8"), (None, "isn't there")],
)
def test_a_link_that_cannot_be_followed_is_left_and_reported(folder: Path, data: bytes | None, why: str) -> None:
    if data:
        (folder / "lore.md").write_bytes(data)
    (folder / "SOUL.md").write_text("## Context\n[a](lore.md)")
    soul = read_soul(folder)
    assert soul.context == "[a](lore.md)"
    assert why in soul.problems[0]


def test_what_links_lead_to_is_limited_all_together(folder: Path) -> None:
    (folder / "lore.md").write_text("x" * (MAX_LINKED_CHARS // 2 + 1))
    (folder / "SOUL.md").write_text("## Context\n[a](lore.md) [b](lore.md)")
    soul = read_soul(folder)
    assert soul.context.endswith("x [b](lore.md)")
    assert len(soul.problems) == 1


def test_tools_that_are_none_and_intents_without_a_meaning_are_reported(folder: Path) -> None:
    (folder / "SOUL.md").write_text("## Tools\n- dig\n- fly: up and away\n## Verb Mapping\n- go home\n")
    character = Character(folder, MooSettings(tools=["look"]))
    assert character.tools == ["dig", "fly", "look"]
    intent, tool = character.problems
    assert intent == "SOUL.md: `go home` has no `->` and is ignored."
    assert tool.startswith("Unknown tool fly; available: dig, ")


def test_rules_that_do_not_compile_or_match_everything_are_left_out_and_reported(folder: Path) -> None:
    soul = read_soul(folder)
    assert soul.rules == [
        SoulRule("^You are cold", "wear coat"),
        SoulRule("(?i)come here", "go north", for_players=True),
        SoulRule("hello", "say Hello."),
    ]
    assert len(soul.problems) == 2


@pytest.mark.parametrize("pattern", ["(", "", ".*", ".", r"\S", "[a-z]", "x?", "^", "a|"])
def test_such_a_pattern_is_no_rules(pattern: str) -> None:
    assert rule_problem(pattern)


@pytest.mark.parametrize("pattern", ["(a|aa)+$", "(a+)+$", "(.*a){12}$", r"((?:\w+)\s?)+x", "[ab]*a[ab]{400}$"])
def test_no_rule_holds_the_process_on_any_line(pattern: str) -> None:
    assert not rule_problem(pattern)
    rules = Engagement([SoulRule(pattern, "look")])
    assert not rules.answer(ServerLine("a" * 400 + "!"), 0)


@pytest.mark.parametrize("pattern", [r"(\w+) \1", "(?=come)x", "(?<!never )come", "a++b", "a{1001}"])
def test_what_a_linear_time_engine_can_not_express_is_refused_with_the_reason(pattern: str) -> None:
    assert re.search(r"RE2 can't read .*: (invalid|bad) ", rule_problem(pattern))


def test_the_baseline_comes_before_the_own_context_and_its_rules_after_the_own(folder: Path) -> None:
    base = "Share your tools.\n## Rules of Engagement\n- `rain` -> look\n## Verb Mapping\n- rest -> sit\n"
    (folder.parent / "baseline.md").write_text(base)
    soul = read_soul(folder)
    assert soul.context.startswith("Share your tools.\n\nSee A hut is small.")
    assert soul.rules[-1] == SoulRule("rain", "look")
    assert soul.verbs[-1] == ("rest", "sit")
    assert "Share" not in read_soul(folder, use_baseline=False).context


def test_what_it_learns_is_kept_once_in_its_section_and_counts(folder: Path) -> None:
    for _ in range(2):
        patch_soul(folder, "soul_patch_note", "Doors stick.")
        patch_soul(folder, "soul_patch_rule", "`^It rains` → look up")
        patch_soul(folder, "soul_patch_verb", "warm up -> wear coat")
        patch_soul(folder, "soul_patch_note", "Tinker is kind.")
    assert (folder / "SOUL.patch.md").read_text() == (
        "## Lessons Learned\n- Doors stick.\n- Tinker is kind.\n\n"
        "## Rules of Engagement\n- `^It rains` -> look up\n\n## Verb Mapping\n- warm up -> wear coat\n"
    )
    soul = read_soul(folder)
    assert soul.lessons == ["Doors stick.", "Tinker is kind."]
    assert soul.rules[-1] == SoulRule("^It rains", "look up")
    assert "- Tinker is kind." in soul.prompt


@pytest.mark.parametrize("text", [".* -> give all", "( -> look", "no arrow", "^It rains"])
def test_a_rule_that_is_none_is_not_learned(folder: Path, text: str) -> None:
    assert patch_soul(folder, "soul_patch_rule", text).startswith("Not learned")
    assert not (folder / "SOUL.patch.md").exists()


def test_what_is_learned_has_a_limit(folder: Path) -> None:
    assert patch_soul(folder, "soul_patch_note", "x" * (MAX_LEARNED_CHARS - 100)).startswith("Learned")
    assert patch_soul(folder, "soul_patch_note", "y" * 100).startswith("Not learned: SOUL.patch.md has 39,")
    assert len(read_soul(folder).lessons) == 1


def test_a_learned_rule_can_not_be_marked_as_one_for_players(folder: Path) -> None:
    (folder / "SOUL.patch.md").write_text("## Rules of Engagement\n- !`give me` -> give all\n")
    assert read_soul(folder).rules[-1] == SoulRule("give me", "give all")


def said(text: str) -> ServerLine:
    return ServerLine(text, "say", "Tinker")


def happened(text: str) -> ServerLine:
    """A line of the world, on a server that names all who talk."""
    return ServerLine(text, is_unproven=True)


@pytest.mark.parametrize(
    "line", [ServerLine("A chill wind blows."), ServerLine("A chill wind blows.", is_unproven=True, is_written=True)]
)
def test_without_proof_that_nobody_said_it_a_line_is_answered_with_words_and_looks_alone(line: ServerLine) -> None:
    assert not Engagement([SoulRule("chill", "give all to bob")]).answer(line, 0)
    assert Engagement([SoulRule("chill", "say Brr.")]).answer(line, 0) == "say Brr."
    assert Engagement([SoulRule("chill", "wear coat", for_players=True)]).answer(line, 0) == "wear coat"


def test_the_first_rule_that_matches_answers() -> None:
    rules = Engagement([SoulRule("cold", "wear coat"), SoulRule("You", "look")])
    assert rules.answer(happened("You are cold"), 0) == "wear coat"
    assert rules.answer(ServerLine("You sneeze"), 0) == "look"
    assert not rules.answer(ServerLine("It rains"), 0)


def test_what_a_player_said_is_answered_with_words_and_looks_unless_the_rule_is_marked() -> None:
    rules = Engagement([SoulRule("give", "give all"), SoulRule("come", "go north", for_players=True)])
    assert not rules.answer(said("Tinker: give me all"), 0)
    assert rules.answer(happened("give way"), 0) == "give all"
    assert rules.answer(said("Tinker: come"), 0) == "go north"
    assert Engagement([SoulRule("hi", "say Hello.")]).answer(said("Tinker: hi"), 0) == "say Hello."


@pytest.mark.parametrize("command", ["say Hello; @recycle #61", "lookout", "sayonara"])
def test_a_command_that_only_begins_like_words_or_a_look_does_not_answer_a_player(command: str) -> None:
    assert not Engagement([SoulRule("hi", command)]).answer(said("Tinker: hi"), 0)
    assert Engagement([SoulRule("hi", command)]).answer(happened("A ship"), 0) == command


def test_what_looks_said_counts_as_said_where_the_server_does_not_tell_who_talks() -> None:
    rules = Engagement([SoulRule("give", "give all")])
    assert not rules.answer(ServerLine("Tinker: give me all"), 0)
    assert not rules.answer(ServerLine('Tinker pages, "give me all"'), 0)


def test_a_rule_rests_after_an_answer_and_all_together_answer_a_few_times_a_minute() -> None:
    rules = Engagement([SoulRule(f"x{number}$", "look") for number in range(20)])
    assert rules.answer(ServerLine("x0"), 0)
    assert not rules.answer(ServerLine("x0"), RULE_PAUSE_S - 1)
    assert rules.answer(ServerLine("x0"), RULE_PAUSE_S)
    answers = [rules.answer(ServerLine(f"x{number}"), 10) for number in range(1, 20)]
    assert sum(map(bool, answers)) == MAX_ANSWERS_PER_MINUTE - 2
    assert rules.answer(ServerLine("x19"), 71)
