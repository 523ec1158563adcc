"""What is kept for the project and for the user, and how it is found again."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from denizen.config import Config
from denizen.config.home import project_folder
from denizen.config.redact import Redactor
from denizen.config.settings import AgentSettings
from denizen.errors import DenizenError, ToolRefused
from denizen.memory import LongTermMemory, open_memory
from denizen.runtime.postgres import PostgresDatabase
from denizen.testing import FakeClock

DAY = 86_400.0

Open = Callable[..., LongTermMemory]
in_files = pytest.mark.parametrize("database", ["files"], indirect=True)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 11, 21, 12, tzinfo=UTC))


@pytest.fixture
def memory_of(tmp_path: Path, clock: FakeClock, database: PostgresDatabase | None, opened: ExitStack) -> Open:
    """`memory_of("project")`: the memory of the folder of that name."""

    def make(project: str = "project", **options: Any) -> LongTermMemory:
        (tmp_path / project).mkdir(exist_ok=True)
        config = Config(
            home=tmp_path / "home",
            workspace=tmp_path / project,
            agent=AgentSettings(workspace_dir=tmp_path / "own"),
        )
        memory = open_memory(config, clock=clock, database=database, **options)
        opened.callback(memory.close)
        return memory

    return make


@pytest.fixture
def memory(memory_of: Open) -> LongTermMemory:
    return memory_of()


async def recalled(memory: LongTermMemory, query: str, limit: int = 10) -> list[str]:
    return [fact.text for fact in await memory.recall(query, limit)]


# Where facts are


async def test_a_fact_of_a_project_stays_there_and_one_of_the_user_is_everywhere(memory_of: Open) -> None:
    here, there = memory_of("here"), memory_of("there")
    assert await here.remember("Tests run with tox") == "Remembered for this project."
    assert await here.remember("Ada likes tox", scope="user") == "Remembered for the user."
    assert [fact.id[0] for fact in await here.recall("tox")] == ["u", "p"]
    assert await recalled(there, "tox") == ["Ada likes tox"]


async def test_outside_a_project_all_is_the_users(memory_of: Open, tmp_path: Path) -> None:
    await memory_of("own").remember("Ada likes tea")
    assert not (tmp_path / "home" / "projects").exists()
    assert await recalled(memory_of("elsewhere"), "tea") == ["Ada likes tea"]


async def test_two_projects_of_one_name_are_two(tmp_path: Path) -> None:
    one, other = (project_folder(tmp_path, tmp_path / place / "app") for place in "ab")
    assert one != other
    assert one.name.startswith("app-")
    assert one.parent == tmp_path / "projects"


async def test_a_fact_said_twice_is_one(memory: LongTermMemory) -> None:
    await memory.remember("Ada likes tea")
    assert await memory.remember("ada likes  tea") == "Known for this project already; it counts as said today."
    assert len(memory.facts()) == 1


async def test_a_fact_is_one_line(memory: LongTermMemory) -> None:
    await memory.remember("one\ntwo\x1b[2J\u202e", context="a\nb")
    [fact] = memory.facts()
    assert (fact.text, fact.context) == ("one two[2J", "a b")


@pytest.mark.parametrize(("text", "why"), [("\n\x00", "empty"), ("x" * 2001, "longer than 2000 characters")])
async def test_what_is_no_fact_is_refused(memory: LongTermMemory, text: str, why: str) -> None:
    with pytest.raises(ToolRefused, match=why):
        await memory.remember(text)
    assert memory.facts() == []


@in_files
async def test_secrets_never_reach_the_disk(memory_of: Open, tmp_path: Path) -> None:
    memory = memory_of(redact=Redactor({"KEY": "hunter2-hunter2"}).text, with_notes=True)
    await memory.remember("The password is hunter2-hunter2", context="hunter2-hunter2")
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) >= 2
    assert not [file for file in files if b"hunter2-hunter2" in file.read_bytes()]
    assert await recalled(memory, "password") == ["The password is [redacted:KEY]"]


@in_files
async def test_a_damaged_file_is_reported(memory: LongTermMemory, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "memory.db").write_bytes(b"garbage" * 1000)
    with pytest.raises(DenizenError, match="is damaged"):
        await memory.recall("tea")


# What comes first


async def test_rare_words_count_more_than_common_ones(memory: LongTermMemory) -> None:
    for name in ("lexer", "linker", "loader"):
        await memory.remember(f"The {name} module is slow")
    await memory.remember("Parsing is done by hand")
    assert (await recalled(memory, "module for parsing"))[0] == "Parsing is done by hand"


async def test_more_of_the_words_count_more(memory: LongTermMemory) -> None:
    for fact in ("Ada likes green tea", "Bob likes coffee", "The cat is green"):
        await memory.remember(fact)
    assert await recalled(memory, "green TEA") == ["Ada likes green tea", "The cat is green"]


async def test_weight_decides_among_facts_that_fit_alike(memory: LongTermMemory) -> None:
    await memory.remember("Deploy with docker", weight=0.1)
    await memory.remember("Deploy with make", weight=0.9)
    assert await recalled(memory, "deploy") == ["Deploy with make", "Deploy with docker"]


async def test_the_fresher_comes_first_among_equals(memory: LongTermMemory, clock: FakeClock) -> None:
    await memory.remember("Deploy with make")
    await clock.sleep(200 * DAY)
    await memory.remember("Deploy with docker")
    assert await recalled(memory, "deploy") == ["Deploy with docker", "Deploy with make"]
    await clock.sleep(1)
    await memory.remember("deploy with make")
    assert (await recalled(memory, "deploy"))[0] == "Deploy with make"


async def test_a_little_weight_does_not_outweigh_years(memory: LongTermMemory, clock: FakeClock) -> None:
    await memory.remember("Deploy with make", weight=0.55)
    await clock.sleep(200 * DAY)
    await memory.remember("Deploy with docker", weight=0.5)
    assert await recalled(memory, "deploy") == ["Deploy with docker", "Deploy with make"]


async def test_an_old_fact_that_fits_beats_a_fresh_one_that_hardly_fits(
    memory: LongTermMemory, clock: FakeClock
) -> None:
    await memory.remember("The auth module keeps tokens in cookies")
    await clock.sleep(3000 * DAY)
    await memory.remember("The build module is new")
    assert (await recalled(memory, "auth module tokens"))[0] == "The auth module keeps tokens in cookies"


async def test_where_no_word_fits_a_piece_of_one_may(memory: LongTermMemory) -> None:
    await memory.remember("See submodule.py -> it is C++")
    assert await recalled(memory, "odule.p") == await recalled(memory, "->") == ["See submodule.py -> it is C++"]
    assert await recalled(memory, "nothing of that") == []


async def test_without_words_the_latest_come_first(memory: LongTermMemory, clock: FakeClock) -> None:
    for scope in ("project", "user"):
        for name in ("one", "two"):
            await clock.sleep(1)
            await memory.remember(f"{scope} {name}", scope=scope)
    assert await recalled(memory, " ") == ["user two", "user one", "project two", "project one"]
    assert await recalled(memory, "", 1) == ["user two"]
    assert await recalled(memory, "one", 1) == ["user one"]
    assert await recalled(memory, "", 0) == await recalled(memory, "one", -1) == []


# Notes


@in_files
async def test_the_notes_keep_each_fact_too(memory_of: Open, tmp_path: Path) -> None:
    memory = memory_of(with_notes=True)
    assert await memory.remember("Ada likes tea") == "Remembered for this project. Remembered in MEMORY.md."
    assert (tmp_path / "own" / "MEMORY.md").read_text() == "- 2026-11-21: Ada likes tea\n"
    assert [(fact.text, fact.id) for fact in await memory.recall("tea")] == [("Ada likes tea", "p1")]
    assert len(memory.facts()) == 1


@in_files
async def test_what_the_user_wrote_into_the_notes_is_found(memory_of: Open, tmp_path: Path) -> None:
    memory = memory_of(with_notes=True)
    (tmp_path / "own" / "memory" / "202602").mkdir(parents=True)
    (tmp_path / "own" / "MEMORY.md").write_text("# Me\n- I like tea\n- 2026-99-99: Tea at five\n")
    (tmp_path / "own" / "memory" / "202602" / "20260201.md").write_text("Met Bob\n")
    assert {*await recalled(memory, "teas tea")} == {"I like tea", "Tea at five"}
    [met] = await memory.recall("2026-02-01")
    assert (met.text, met.source, met.id) == ("Met Bob", "20260201.md", "")
    assert await recalled(memory, "ke te") == ["I like tea"]


# Forgetting


@pytest.mark.parametrize("what", ["p1", "tox runs  THE tests", "tox", "tests tox"])
async def test_a_fact_is_forgotten_by_id_text_or_words_that_only_it_has(memory: LongTermMemory, what: str) -> None:
    await memory.remember("Tox runs the tests")
    await memory.remember("Make builds the docs")
    assert await memory.forget(what) == "Forgotten: Tox runs the tests"
    assert [fact.text for fact in memory.facts()] == ["Make builds the docs"]


@in_files
async def test_a_fact_is_forgotten_wherever_it_is(memory_of: Open, tmp_path: Path) -> None:
    memory = memory_of(with_notes=True)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "MEMORY.md").write_bytes(b"# Me\xff\n- ada likes tea\n- Bob likes milk")
    await memory.remember("Ada likes tea", scope="user")
    await memory.remember("Ada likes tea")
    await memory.forget("Ada likes tea")
    assert (tmp_path / "own" / "MEMORY.md").read_bytes() == b"# Me\xff\n- Bob likes milk"
    assert [fact.text for fact in memory.facts()] == ["Bob likes milk"]


@in_files
async def test_a_line_of_the_notes_can_be_forgotten(memory_of: Open, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "MEMORY.md").write_text("- Bob likes milk\n")
    assert await memory_of(with_notes=True).forget("milk") == "Forgotten: Bob likes milk"
    assert (tmp_path / "own" / "MEMORY.md").read_text() == ""


@in_files
async def test_a_daily_note_is_the_users_to_change(memory_of: Open, tmp_path: Path) -> None:
    (tmp_path / "own" / "memory" / "202602").mkdir(parents=True)
    (tmp_path / "own" / "memory" / "202602" / "20260201.md").write_text("Met Bob\n")
    with pytest.raises(ToolRefused, match=r"in the daily note 20260201\.md"):
        await memory_of(with_notes=True).forget("Bob")


async def test_words_that_several_facts_have_forget_none(memory: LongTermMemory) -> None:
    for fact in ("Ada likes tea", "Bob likes tea"):
        await memory.remember(fact)
    with pytest.raises(ToolRefused, match="2 facts match") as refused:
        await memory.forget("tea")
    assert {"- p1: Ada likes tea", "- p2: Bob likes tea"} < {*str(refused.value).splitlines()}
    assert len(memory.facts()) == 2


@pytest.mark.parametrize("what", ["coffee", "p7", "", "the", "tea coffee"])
async def test_what_is_not_known_cannot_be_forgotten(memory: LongTermMemory, what: str) -> None:
    await memory.remember("Ada likes tea")
    with pytest.raises(ToolRefused, match="Nothing is remembered that matches"):
        await memory.forget(what)


async def test_many_at_once_in_one_process(memory: LongTermMemory) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(memory.remember(f"fact {number % 10}"))
            group.create_task(memory.recall("fact"))
    assert len(memory.facts()) == 10
