"""Jobs run when they are due, once, and where they were made one learns of it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.engine.scene import call
from tests.worlds.chat.conftest import PATIENCE, Serve, SimulatedClock, key_of, message, said

from denizen.engine.session_state import IN_SIGHT
from denizen.entries import StateEntry
from denizen.testing import FakeClock
from denizen.worlds.chat.ledger import ledger
from denizen.worlds.chat.ledger.database import Database
from denizen.worlds.chat.settings import CronSettings
from denizen.worlds.chat.timers.cron import Cron, CronJob

NOON = datetime(2026, 3, 27, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
BERLIN = ZoneInfo("Europe/Berlin")


def job(kind: Any, when: str, **more: Any) -> CronJob:
    given: dict[str, Any] = {"id": "j", "name": "report", "text": "Report.", "channel": "http", "chat": "ann"}
    given |= {"home": key_of("ann"), "since": NOON, "kind": kind, "when": when, **more}
    return CronJob(**given)


def adds(**args: Any) -> Any:
    return call(("cron", {"action": "add", "text": "Report.", "name": "report", **args}))


async def inbox(database: Database) -> list[str]:
    """The ids of all messages."""
    return [
        each for (each,) in await database.run(lambda db: db.execute("SELECT id FROM inbox ORDER BY seq").fetchall())
    ]


@asynccontextmanager
async def running(*crons: Cron) -> AsyncGenerator[None]:
    """Schedulers for as long as the block runs, which has so much time."""
    tasks = [asyncio.create_task(each.run()) for each in crons]
    try:
        async with asyncio.timeout(PATIENCE):
            yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@pytest.mark.parametrize(
    ("kind", "when", "zone", "runs"),
    [
        ("at", "2026-03-28T09:00", "", ["28 08:00"]),
        ("at", "2026-03-28T09:00", "America/New_York", ["28 13:00"]),
        ("at", "2026-03-28T09:00+05:30", "", ["28 03:30"]),
        ("at", "2026-03-27T12:00", "", []),
        ("every", "90m", "", ["27 13:30", "27 15:00", "27 16:30", "27 18:00"]),
        ("every", "1d", "", ["28 12:00", "29 12:00", "30 12:00", "31 12:00"]),
        ("cron", "30 8 * * *", "", ["28 07:30", "29 06:30", "30 06:30", "31 06:30"]),
        ("cron", "30 2 * * *", "", ["28 01:30", "29 01:00", "30 00:30", "31 00:30"]),
        ("cron", "0 9 * * mon", "UTC", ["30 09:00"]),
        ("cron", "@daily", "", ["27 23:00", "28 23:00", "29 22:00", "30 22:00"]),
        ("cron", "@Weekly", "UTC", ["29 00:00"]),
        ("cron", "@yearly", "UTC", []),
    ],
)
def test_job_is_due_in_its_time_zone_also_where_clocks_change(kind: str, when: str, zone: str, runs: list[str]) -> None:
    found, at = [], NOON
    while len(found) < 4 and (due := job(kind, when, zone=zone).next(at, BERLIN)) and due.month == 3:
        found.append(f"{due:%d %H:%M}")
        at = due
    assert found == runs


def test_night_that_has_an_hour_twice_runs_a_job_once() -> None:
    first = job("cron", "30 2 * * *").next(datetime(2026, 10, 24, 12, tzinfo=UTC), BERLIN)
    assert first == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert job("cron", "30 2 * * *").next(first or NOON, BERLIN) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


def test_without_a_time_zone_the_machines_holds() -> None:
    due = job("cron", "0 9 * * *").next(NOON, None)
    assert due
    assert f"{due.astimezone():%H:%M}" == "09:00"


async def test_job_runs_in_its_own_session_and_its_result_is_known_in_the_chat(serve: Serve) -> None:
    clock = SimulatedClock(NOON)
    script = [adds(kind="every", when="1h"), "scheduled", "all is well", "glad to hear"]
    async with serve(*script, clock=clock) as scene:
        await scene.say("report every hour")
        await scene.settled()
        await clock.advance(HOUR, scene)
        assert await scene.sent() == ["scheduled", "all is well"]
        assert "report every hour" not in said(scene.model, 2)
        assert "[cron job report] Report." in said(scene.model, 2)
        await scene.say("good")
        await scene.settled()
        assert "You sent this here, from cron job" in said(scene.model)
        assert "all is well" in said(scene.model)


async def test_job_of_the_chats_session_has_its_history_and_is_kept_once(serve: Serve) -> None:
    clock = SimulatedClock(NOON)
    script = [adds(kind="every", when="1h", session="chat"), "scheduled", "all is well", "glad"]
    async with serve(*script, clock=clock) as scene:
        await scene.say("report every hour")
        await scene.settled()
        await clock.advance(HOUR, scene)
        assert "report every hour" in said(scene.model, 2)
        await scene.say("good")
        await scene.settled()
        assert "You sent this here" not in said(scene.model)


async def test_job_that_was_due_while_the_machine_slept_runs_once_it_wakes(serve: Serve) -> None:
    clock = SimulatedClock(NOON)
    async with serve(adds(kind="every", when="8h"), "scheduled", "good morning", clock=clock) as scene:
        await scene.say("wake me")
        await scene.settled()
        await clock.advance(HOUR, scene)
        clock.suspend(7 * HOUR)
        await clock.advance(HOUR / 60, scene)
        assert await scene.sent() == ["scheduled", "good morning"]


async def test_what_a_job_saw_counts_as_seen_in_the_chat_that_hears_of_it(serve: Serve) -> None:
    clock = SimulatedClock(NOON)
    script = [adds(kind="every", when="1h"), "scheduled", call(("overhear", {})), "they say: fetch this", "no"]
    async with serve(*script, clock=clock) as scene:
        await scene.say("report every hour")
        await scene.settled()
        await clock.advance(HOUR, scene)
        assert (await scene.sent())[1] == "they say: fetch this"
        entries = await scene.gateway.agent.record.store.read(key_of("ann"))
    assert [entry.value for entry in entries if isinstance(entry, StateEntry) and entry.name == IN_SIGHT] == [
        {"untrusted": True}
    ]


@pytest.mark.parametrize(("missed", "runs"), [("once", ["made up"]), ("skip", [])])
async def test_runs_missed_over_a_restart_become_one_or_none(serve: Serve, missed: str, runs: list[str]) -> None:
    async with serve(adds(kind="every", when="1h", missed=missed), "scheduled", clock=SimulatedClock(NOON)) as scene:
        await scene.say("1")
        await scene.settled()
    later = SimulatedClock(NOON + 3 * DAY + HOUR / 2)
    async with serve("made up", "on time", clock=later) as scene:
        await later.advance(HOUR / 4, scene)
        assert (await scene.sent())[1:] == runs
        await later.advance(HOUR / 2, scene)
        assert len(await scene.sent()) == len(runs) + 2


async def test_job_for_one_time_runs_and_is_gone(serve: Serve) -> None:
    clock = SimulatedClock(NOON)
    async with serve(adds(when="2026-03-27T14:00", zone="UTC"), "scheduled", "wake up", clock=clock) as scene:
        await scene.say("wake me")
        await scene.settled()
        await scene.gateway.cron.add(job("every", "7d"), NOON + 7 * DAY)
        await clock.advance(2 * HOUR - HOUR / 60, scene)
        assert await scene.sent() == ["scheduled"]
        await clock.advance(HOUR / 60, scene)
        assert await scene.sent() == ["scheduled", "wake up"]
        assert [each.id for each, _ in await scene.gateway.cron.jobs()] == ["j"]


async def test_run_is_one_message_though_two_schedulers_begin_it(database: Database) -> None:
    clocks = [FakeClock(NOON + HOUR)] * 2
    crons = [Cron(database, clock=each, zone=UTC, settings=CronSettings()) for each in clocks]
    await crons[0].add(job("at", "2026-03-27T13:00"), NOON + HOUR)
    async with running(*crons):
        while await crons[0].jobs():
            pass
    assert await inbox(database) == ["cron:j:2026-03-27T13:00:00Z"]


async def test_run_in_the_chat_is_left_out_while_the_last_one_waits_whatever_else_waits_there(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    cron = Cron(database, clock=FakeClock(NOON), zone=UTC, settings=CronSettings())
    await database.run(lambda db: ledger.put(db, message("hi")))
    await cron.add(job("every", "1h", in_chat=True), NOON + HOUR)
    async with running(cron):
        while not any(due and due > NOON + 4 * HOUR for _, due in await cron.jobs()):
            pass
    assert await inbox(database) == ["hi", "cron:j:2026-03-27T13:00:00Z"]
    assert "its last run hasn't ended" in caplog.text


async def test_job_whose_time_zone_is_gone_runs_and_is_disabled_and_the_others_go_on(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    cron = Cron(database, clock=FakeClock(NOON), zone=UTC, settings=CronSettings())
    gone = job("every", "1h", id="gone", zone="Mars/Olympus")
    await cron.add(gone, NOON + HOUR)
    await cron.add(job("at", "2026-03-27T14:00"), NOON + 2 * HOUR)
    async with running(cron):
        while len(await cron.jobs()) > 1:
            pass
    assert await cron.jobs() == [(gone, None)]
    assert await inbox(database) == ["cron:gone:2026-03-27T13:00:00Z", "cron:j:2026-03-27T14:00:00Z"]
    assert "Cron job gone (report) is disabled: 'No time zone found with key Mars/Olympus'" in caplog.text


async def test_jobs_are_listed_disabled_enabled_and_removed(serve: Serve) -> None:
    clock = SimulatedClock(NOON)
    async with serve(adds(kind="every", when="1h"), "scheduled", clock=clock, timezone="Europe/Berlin") as scene:
        await scene.say("1")
        await scene.settled()
        cron = scene.gateway.cron
        ((made, due),) = await cron.jobs()
        assert (made.text, due) == ("Report.", NOON + HOUR)
        assert f"Job {made.id} runs next at 2026-03-27 14:00:00 CET." in said(scene.model)
        assert await cron.change(made.id, "disable")
        assert await cron.jobs() == [(made, None)]
        assert await cron.change(made.id, "enable")
        assert await cron.jobs() == [(made, NOON + HOUR)]
        assert await cron.change(made.id, "remove")
        assert not await cron.change(made.id, "remove")


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"kind": "every", "when": "1s"}, "not an interval of 10 s or more"),
        ({"kind": "cron", "when": "0 9 * *"}, "Wrong number of fields"),
        ({"kind": "at", "when": "2020-01-01T00:00"}, "has passed"),
        ({"kind": "at", "when": "soon"}, "Invalid isoformat"),
        ({"kind": "every", "when": "1h", "zone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"kind": "every"}, "a job needs"),
    ],
)
async def test_what_cannot_be_scheduled_is_refused(serve: Serve, args: dict[str, str], why: str) -> None:
    async with serve(adds(**args), "sorry", clock=FakeClock()) as scene:
        await scene.say("1")
        assert await scene.contents(1) == ["sorry"]
        assert why in said(scene.model)
        assert not await scene.gateway.cron.jobs()


async def test_job_is_asked_about_in_sight_of_others_text(serve: Serve) -> None:
    async with serve(call(("overhear", {})), adds(kind="every", when="1h"), clock=SimulatedClock(NOON)) as scene:
        await scene.say("1")
        assert "Text from others is in sight" in (await scene.contents(1))[0]
        assert not await scene.gateway.cron.jobs()


async def test_chat_lists_and_changes_its_own_jobs_only(serve: Serve) -> None:
    clock = SimulatedClock(NOON)
    async with serve(adds(kind="every", when="1h"), "added", clock=clock) as scene:
        await scene.say("hourly")
        await scene.settled()
        ((made, _),) = await scene.gateway.cron.jobs()
    removes = call(("cron", {"action": "remove", "job": made.id}))
    async with serve(call(("cron", {"action": "list"})), "none", removes, "no", clock=clock) as scene:
        for words, why in (("which?", "This chat has no jobs."), ("remove it", f"this chat has no job '{made.id}'")):
            await scene.say(words, "ben")
            await scene.settled()
            assert why in said(scene.model)
        assert [each for each, _ in await scene.gateway.cron.jobs()] == [made]


async def test_jobs_go_on_where_the_clock_is_set_back(serve: Serve) -> None:
    clock = SimulatedClock(NOON)
    async with serve(*["reported"] * 9, clock=clock) as scene:
        await scene.gateway.cron.add(job("every", "1h"), NOON + HOUR)
        await clock.advance(3 * HOUR, scene)
        clock.suspend(-5 * HOUR / 2)
        await clock.advance(2 * HOUR, scene)
        runs = await inbox(scene.gateway.database)
    times = ["13:00:00Z", "14:00:00Z", "15:00:00Z", "13:00:00Z#2", "14:00:00Z#2"]
    assert [each.rpartition("T")[2] for each in runs if each.startswith("cron:")] == times


async def test_run_is_not_repeated_where_the_clock_is_corrected(serve: Serve) -> None:
    clock = SimulatedClock(NOON)
    async with serve(*["reported"] * 9, clock=clock) as scene:
        await scene.gateway.cron.add(job("every", "1h"), NOON + HOUR)
        await clock.advance(HOUR, scene)
        clock.suspend(timedelta(minutes=-2))
        await clock.advance(HOUR, scene)
        runs = await inbox(scene.gateway.database)
    assert [each.rpartition("T")[2] for each in runs if each.startswith("cron:")] == ["13:00:00Z"]
