"""Plans: written once, kept over a restart, drawn from what the world answers, and advanced by what is built."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from denizen.errors import ConfigError
from denizen.worlds.moo.plans import built_room, load_plan, plan_after, room_names, save_build_plan, save_traversal_plan
from denizen.worlds.moo.server_text import CommandOutput

AT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
PLAN = 'rooms:\n  - name: "Site Hut"\n    exits:\n      - name: north\n  - name: The Library\n'


def test_the_rooms_of_a_plan_are_its_outer_items() -> None:
    assert room_names(PLAN) == ["Site Hut", "The Library"]
    assert room_names("- name: Hut\n  - name: peg\n- name: Annex") == ["Hut", "Annex"]
    assert room_names("a hut and an annex") == []


def test_a_build_plan_is_taken_up_without_the_rooms_that_are_built(tmp_path: Path) -> None:
    assert load_plan(tmp_path, visits=True) == []
    save_build_plan(tmp_path, PLAN, AT)
    assert (tmp_path / "builds" / "2026-11-21-09-30.yaml").read_text() == PLAN
    assert load_plan(tmp_path, visits=False) == ["Site Hut", "The Library"]
    save_traversal_plan(tmp_path, ["The Library"])
    assert load_plan(tmp_path, visits=False) == ["The Library"]
    save_traversal_plan(tmp_path, [])
    assert load_plan(tmp_path, visits=False) == []


def test_rooms_are_not_built_again_after_the_plan_became_one_of_rooms_to_visit(tmp_path: Path) -> None:
    save_build_plan(tmp_path, PLAN, AT)
    save_traversal_plan(tmp_path, ["#9"])
    assert load_plan(tmp_path, visits=False) == []
    assert load_plan(tmp_path, visits=True) == ["#9"]


def test_of_several_build_plans_the_last_counts(tmp_path: Path) -> None:
    save_build_plan(tmp_path, PLAN, AT)
    save_build_plan(tmp_path, "- name: Tower", AT.replace(hour=10))
    assert load_plan(tmp_path, visits=False) == ["Tower"]


def test_without_a_build_plan_the_rooms_to_visit_are_taken_up_where_they_may_be(tmp_path: Path) -> None:
    save_traversal_plan(tmp_path, ["#9", "The\nLibrary"])
    assert load_plan(tmp_path, visits=True) == ["#9", "The Library"]
    assert load_plan(tmp_path, visits=False) == []


def test_a_plan_that_cannot_be_read_or_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "builds").write_text("no directory")
    with pytest.raises(ConfigError, match="builds can't be made"):
        save_build_plan(tmp_path, PLAN, AT)
    (tmp_path / "builds").unlink()
    save_traversal_plan(tmp_path, [])
    (tmp_path / "builds" / "traversal_plan.txt").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        load_plan(tmp_path, visits=True)


@pytest.mark.parametrize(
    ("line", "room"),
    [
        ('Dug an exit north to "The Library" (#61).', "The Library"),
        ("Dug east to The Annex (#65).", "The Annex"),
        ("Tunnelled west back to The Library (#61).", ""),
        ("You are now in The Annex (#65).", ""),
        ("Created #67 (Site Hut) in #65 (The Annex).", "Site Hut"),
        ('Tinker: Dug an exit north to "The Library" (#61).', ""),
    ],
)
def test_what_was_built_is_read_in_each_form(line: str, room: str) -> None:
    assert built_room(line) == room


def test_what_is_built_leaves_the_plan() -> None:
    burrowed = CommandOutput("", ["Dug east to The Annex (#65).", "You are now in The Annex (#65)."])
    assert plan_after(["Site Hut", "the annex"], burrowed) == ["Site Hut"]


DIVINED = CommandOutput(
    "@divine location",
    [
        "Impressions surface from the noise of the world (2):",
        "  The Library (#61)",
        "  Site Hut (#59)",
        "You feel tired.",
        "  Lamp (#1)",
    ],
)


def test_divined_rooms_are_the_plan_where_there_is_none_or_one_from_disk() -> None:
    assert plan_after([], DIVINED) == ["#61", "#59"]
    assert plan_after(["#1"], DIVINED, is_loaded=True) == ["#61", "#59"]
    assert plan_after(["#1"], DIVINED) == ["#1"]
    assert plan_after(["#1"], CommandOutput("look", ["  Lamp (#67)"]), is_loaded=True) == ["#1"]
