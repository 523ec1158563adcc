"""Budgets: per turn, per session, per day; what was in flight may overspend, nothing after it."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import DEFAULT, Host, call, requests_of, run_agent, say
from tests.postgres import OwnServer

from denizen import Agent, Config, tool
from denizen.config.settings import AgentSettings, BudgetSettings
from denizen.errors import DenizenError
from denizen.events import Notice
from denizen.ports import Traits
from denizen.sessions.spend import Spend
from denizen.sessions.spend_table import SpendTable
from denizen.sessions.tables import SharedTables
from denizen.testing import FakeClock


@pytest.fixture(params=["one machine", "several"])
async def agent_of(agent_of: MakeAgent, clock: FakeClock, request: pytest.FixtureRequest) -> AsyncIterator[MakeAgent]:
    """Agents that share a budget: on one machine by a file, on several, one each, by PostgreSQL."""
    if request.param == "one machine":
        yield agent_of
        return
    url, machines = request.getfixturevalue("postgres_url"), dict[SharedTables, Agent]()

    def make(*replies: Any, config: Config | None = None, **options: Any) -> Agent:
        tables = SharedTables(url)
        budget = Spend(config or Config(), SpendTable(tables), clock)
        machines[tables] = agent_of(*replies, config=config, budget=budget, **options)
        return machines[tables]

    yield make
    for tables, agent in machines.items():
        await agent.close()
        tables.close()


by_file = pytest.mark.parametrize("agent_of", ["one machine"], indirect=True)


@tool(traits=Traits.READS | Traits.REPEATABLE)
def look() -> str:
    """Look."""
    return "seen"


def dear(usd: float) -> object:
    return call(("look", {}), cost_usd=usd)


async def test_a_turn_stops_before_the_call_after_its_budget_is_spent(agent_of: MakeAgent) -> None:
    config = Config(agent=AgentSettings(max_cost_usd=1.0))
    agent = agent_of(dear(0.6), dear(0.6), dear(0.6), say("never"), tools=[look], config=config)
    result = await run_agent("go", agent=agent)
    assert (result.stop_reason, result.usage.cost_usd) == ("budget", pytest.approx(1.2))
    assert "agent.max_cost_usd" in result.error
    assert len(requests_of(agent)) == 2


async def test_a_session_stops_when_its_turns_have_spent_its_budget(agent_of: MakeAgent) -> None:
    config = Config(budget=BudgetSettings(session_usd=1.0))
    agent = agent_of(say("a", cost_usd=0.7), say("b", cost_usd=0.7), say("c", cost_usd=0.1), config=config)
    stops = [(await run_agent("go", agent=agent)).stop_reason for _ in range(3)]
    assert stops == ["answered", "answered", "budget"]
    other = await run_agent("go", agent=agent, session_key="other")
    assert other.stop_reason == "answered"


async def test_a_day_stops_all_sessions_of_the_home_until_the_next(agent_of: MakeAgent, clock: FakeClock) -> None:
    config = Config(budget=BudgetSettings(day_usd=1.0))
    first = agent_of(say("a", cost_usd=1.5), config=config)
    await run_agent("go", agent=first, session_key="one")
    second = agent_of(say("b", cost_usd=0.1), config=config)
    result = await run_agent("go", agent=second, session_key="two")
    assert (result.stop_reason, "budget.day_usd" in result.error) == ("budget", True)
    await clock.sleep(86_400)
    assert (await run_agent("go", agent=second, session_key="two")).stop_reason == "answered"


async def test_small_sums_are_counted_for_the_next_process_when_the_agent_is_closed(agent_of: MakeAgent) -> None:
    config = Config(budget=BudgetSettings(session_usd=0.005))
    async with agent_of(say("a", cost_usd=0.003), config=config) as agent:
        await run_agent("go", agent=agent)
    async with agent_of(say("b", cost_usd=0.003), say("never"), config=config) as agent:
        stops = [(await run_agent("go", agent=agent)).stop_reason for _ in range(2)]
    assert stops == ["answered", "budget"]


async def test_another_process_hears_of_a_cent_that_was_spent(agent_of: MakeAgent, clock: FakeClock) -> None:
    config = Config(budget=BudgetSettings(day_usd=0.02))
    watching = agent_of(say("a", cost_usd=0.001), say("never"), config=config)
    await run_agent("go", agent=watching, session_key="watching")
    spending = agent_of(*[say("b", cost_usd=0.005)] * 4, config=config)
    for _ in range(4):
        await run_agent("go", agent=spending, session_key="spending")
    await clock.sleep(0.1)
    assert (await run_agent("go", agent=watching, session_key="watching")).stop_reason == "budget"


async def test_turns_at_once_overspend_by_what_is_in_flight_at_most(agent_of: MakeAgent) -> None:
    config = Config(budget=BudgetSettings(day_usd=1.0))
    agent = agent_of(*[dear(0.4)] * 40, tools=[look], config=config)
    async with asyncio.TaskGroup() as group:
        turns = [group.create_task(run_agent("go", agent=agent, session_key=f"s{n}")) for n in range(4)]
    spent = sum(turn.result().usage.cost_usd or 0 for turn in turns)
    assert {turn.result().stop_reason for turn in turns} == {"budget"}
    assert spent <= 1.0 + 4 * 0.4


async def test_a_price_that_nobody_knows_is_said_once(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(say("a", cost_usd=None), say("b", cost_usd=None))
    await run_agent("one", agent=agent, io=host)
    await run_agent("two", agent=agent, io=host)
    assert len([notice for notice in host.of(Notice) if "No price is known" in notice.text]) == 1


async def test_a_budget_of_nothing_makes_no_call(agent_of: MakeAgent) -> None:
    config = Config(agent=AgentSettings(max_cost_usd=0.0))
    agent = agent_of(say("never"), config=config)
    assert (await run_agent("go", agent=agent)).stop_reason == "budget"


def removed(home: Path) -> None:
    for file in home.glob("spend.db*"):
        file.unlink()


def removed_but_for_its_log(home: Path) -> None:
    (home / "spend.db").unlink()


def moved_away(home: Path) -> None:
    (home / "spend.db").rename(home / "spend.old")


def replaced(home: Path) -> None:
    with contextlib.closing(sqlite3.connect(home / "other.db")) as other:
        other.execute("CREATE TABLE spend (name TEXT PRIMARY KEY, usd REAL) WITHOUT ROWID")
    (home / "other.db").rename(home / "spend.db")


@by_file
@pytest.mark.parametrize("meanwhile", [removed, removed_but_for_its_log, moved_away, replaced])
async def test_all_count_in_the_same_file_after_it_was_removed_or_replaced_while_it_was_open(
    agent_of: MakeAgent, clock: FakeClock, meanwhile: Callable[[Path], None]
) -> None:
    config = Config(budget=BudgetSettings(day_usd=1.0))
    first = agent_of(*[say("a", cost_usd=0.3)] * 2, config=config)
    await run_agent("go", agent=first, session_key="one")
    meanwhile(first.home)
    await clock.sleep(0.1)
    await run_agent("go", agent=first, session_key="one")
    second = agent_of(say("b", cost_usd=0.8), say("never"), config=config)
    await run_agent("go", agent=second, session_key="two")
    await clock.sleep(0.1)
    ends = [await run_agent("go", agent=agent, session_key="one") for agent in (first, second)]
    assert [end.stop_reason for end in ends] == ["budget", "budget"]
    assert ends[0].error == ends[1].error


@by_file
async def test_sums_that_could_not_be_read_are_counted_again_once_their_file_is_moved_away(agent_of: MakeAgent) -> None:
    agent = agent_of(say("a", cost_usd=0.5))
    broken = agent.home / "spend.db"
    broken.parent.mkdir(parents=True, exist_ok=True)
    broken.write_bytes(b"no database" * 1_000)
    with pytest.raises(DenizenError, match="move the file away"):
        await run_agent("go", agent=agent)
    broken.rename(broken.with_name("broken.db"))
    assert (await run_agent("go", agent=agent, session_key="other")).reply == "a"
    assert broken.exists()


@by_file
async def test_a_turn_makes_no_further_call_while_the_last_one_cannot_be_counted(
    agent_of: MakeAgent, monkeypatch: pytest.MonkeyPatch, host: Host
) -> None:
    monkeypatch.setattr("denizen.sessions.home_database.TIMEOUT_S", 0.01)
    agent = agent_of(say("a", cost_usd=0.5), dear(0.5), dear(0.5), say("b", cost_usd=0.5), tools=[look])
    await run_agent("before", agent=agent)
    with contextlib.closing(sqlite3.connect(agent.home / "spend.db", isolation_level=None)) as other:
        await agent.record.budget.close()
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DenizenError, match="can't count what calls cost: database is locked"):
            await run_agent("go", agent=agent, io=host)
        assert len(requests_of(agent)) == 2
        other.execute("ROLLBACK")
    assert (await run_agent("again", agent=agent)).stop_reason == "answered"
    await agent.record.budget.close()
    with contextlib.closing(sqlite3.connect(agent.home / "spend.db")) as db:
        assert dict(db.execute("SELECT name, usd FROM spend"))[DEFAULT] == pytest.approx(2.0)


@by_file
@pytest.mark.parametrize("cost", [0.0001, None], ids=["cheap", "without a price"])
async def test_a_process_makes_no_call_that_may_cost_while_nothing_can_be_counted(
    agent_of: MakeAgent, monkeypatch: pytest.MonkeyPatch, cost: float | None
) -> None:
    monkeypatch.setattr("denizen.sessions.home_database.TIMEOUT_S", 0.01)
    before = agent_of(say("a", cost_usd=0.5))
    await run_agent("before", agent=before)
    agent = agent_of(say("b", cost_usd=cost))
    with contextlib.closing(sqlite3.connect(agent.home / "spend.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DenizenError, match="can't count what calls cost"):
            await run_agent("go", agent=agent)
        assert requests_of(agent) == []
    assert (await run_agent("again", agent=agent)).reply == "b"


async def test_server_that_is_away_stops_turns_and_what_was_spent_is_counted_when_it_is_back(
    own_postgres: OwnServer, clock: FakeClock
) -> None:
    tables = SharedTables(f"{own_postgres.url}/postgres")
    spend = Spend(Config(budget=BudgetSettings(session_usd=0.5)), SpendTable(tables), clock)
    assert await spend.charge("other", 0.5, "m") == ""
    own_postgres.stop()
    assert "The database at 127.0.0.1" in await spend.charge("s", 0.5, "m")
    with pytest.raises(DenizenError, match="Check that it is running"):
        await spend.check("s", 0.0)
    own_postgres.start()
    assert "this session is spent: $0.5000 of $0.5" in await spend.check("s", 0.0)
    await spend.close()
    tables.close()


async def test_machines_that_spend_at_once_are_all_counted(postgres_url: str, clock: FakeClock) -> None:
    machines = [SharedTables(postgres_url) for _ in range(4)]
    spends = [Spend(Config(), SpendTable(tables), clock) for tables in machines]
    charges = (spend.charge(f"s{number % 3}", 0.01, "m") for spend in spends for number in range(30))
    assert {*await asyncio.gather(*charges)} == {""}
    sums = SpendTable(machines[0]).read(["s0", "s1", "s2", "day 2026-01-01"])
    assert [*sums.values()] == pytest.approx([0.4, 0.4, 0.4, 1.2])
    for tables in machines:
        tables.close()
