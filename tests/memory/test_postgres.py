"""Memory that several machines share: what is so of PostgreSQL alone."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from tests.postgres import OwnServer

from denizen import Agent, Config
from denizen.config.settings import AgentSettings
from denizen.errors import DenizenError
from denizen.memory import LongTermMemory, open_memory
from denizen.messages import AssistantMessage, ToolCall
from denizen.runtime.postgres import PostgresDatabase
from denizen.testing import FakeClock, ScriptedModel

Open = Callable[..., LongTermMemory]


@pytest.fixture
def memory_of(tmp_path: Path, opened: ExitStack) -> Open:
    """The memory of a machine: its files are in a folder of that name, its workspace has the same path everywhere."""

    def make(url: str, machine: str = "one") -> LongTermMemory:
        memory = open_memory(
            config_of(tmp_path, machine), clock=FakeClock(), with_notes=True, database=PostgresDatabase(url)
        )
        opened.callback(memory.close)
        return memory

    return make


def config_of(folder: Path, machine: str) -> Config:
    own = AgentSettings(workspace_dir=folder / machine / "own")
    return Config(home=folder / machine, workspace=folder / "project", agent=own)


async def test_what_one_machine_keeps_the_others_find(memory_of: Open, postgres_url: str, tmp_path: Path) -> None:
    one, other = memory_of(postgres_url), memory_of(postgres_url, "other")
    assert await one.remember("Ada likes tea") == "Remembered for this project. Remembered in MEMORY.md."
    await one.remember("Bob likes milk", scope="user", untrusted=True)
    assert await one.remember("Ada called", scope="today") == "Noted in memory/202601/20260101.md."
    assert await other.remember("ada likes TEA") == (
        "Known for this project already; it counts as said today. MEMORY.md says so already."
    )
    found = {fact.text: fact.untrusted for fact in await other.recall("likes")}
    assert found == {"Ada likes tea": False, "Bob likes milk": True}
    assert [fact.text for fact in await other.recall("called")] == ["12:00 Ada called"]
    assert await other.forget("Ada likes tea") == "Forgotten: Ada likes tea"
    assert one.for_prompt(3) == [
        ("MEMORY.md", "- 2026-01-01: [untrusted] Bob likes milk\n"),
        ("memory/202601/20260101.md", "- 12:00 Ada called"),
    ]
    assert not [*tmp_path.iterdir()]


async def test_a_session_begins_with_the_shared_notes(memory_of: Open, postgres_url: str, tmp_path: Path) -> None:
    memory = memory_of(postgres_url)
    for number in range(30):
        await memory.remember(f"fact {number} {'x' * 1900}")
    await memory.remember("The office moved", scope="today")
    await memory.remember("The garage moved", scope="today", untrusted=True)
    config = config_of(tmp_path, "one")
    for folder in (config.agent.workspace_dir, tmp_path / "project"):
        folder.mkdir(parents=True)
    (config.agent.workspace_dir / "MEMORY.md").write_text("- of this machine alone")
    (config.agent.workspace_dir / "SOUL.md").write_text("Be kind.")
    noted = AssistantMessage([ToolCall("1", "remember", {"text": "Noted", "scope": "today"})], stop_reason="tool_calls")
    model = ScriptedModel([noted, "Done."])
    async with Agent(config, model=model, memory=memory, clock=FakeClock(), environ={}) as agent:
        await agent.run("hi")
    seen = model.requests[0].system
    parts = ["Be kind.", '<file path="MEMORY.md">\n[cut: the file has 57,', "last lines are shown", "fact 29"]
    parts += ['<file path="memory/202601/20260101.md">', "The office moved"]
    assert sorted(parts, key=seen.index) == parts
    assert "of this machine alone" not in seen
    assert "fact 0 " not in seen
    assert "The garage moved" not in seen
    assert memory.for_prompt(1)[1][1].endswith("- 12:00 Noted"), "in sight of nothing that others wrote"


async def test_a_connection_that_was_lost_is_made_again(memory_of: Open, postgres_url: str) -> None:
    memory = memory_of(postgres_url)
    await memory.remember("Ada likes tea")
    with psycopg.connect(postgres_url) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    await memory.remember("Bob likes milk")
    assert len(memory.facts()) == 2


async def test_a_database_that_goes_away_is_named_and_used_again(memory_of: Open, own_postgres: OwnServer) -> None:
    memory = memory_of(f"{own_postgres.url}/postgres")
    await memory.remember("Ada likes tea")
    own_postgres.stop()
    with pytest.raises(DenizenError, match=r"The database at 127\.0\.0\.1:\d+/postgres: .*Check that it is running"):
        await memory.recall("tea")
    own_postgres.start()
    assert [fact.text for fact in await memory.recall("tea")] == ["Ada likes tea"]
