"""A gateway and its workers behind PgBouncer in `transaction` mode: all but one connection of each."""

import itertools
from pathlib import Path

import psycopg
import pytest
from tests.cli.gateway import GatewayProgram, WorkerProgram, share
from tests.cli.model import Model
from tests.cli.test_worker import all_answered_once_in_order, answer_of, kept_running
from tests.pgbouncer import POOL_SIZE, pooler
from tests.postgres import OwnServer

from denizen.testing import LoopbackRequest

_CONNECTED = "SELECT application_name FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = 'den'"


@pytest.mark.needs("pgbouncer")
async def test_every_message_is_answered_once_in_order_through_a_pooler(
    home: Path,
    model: Model,
    own_postgres: OwnServer,
    gateway: GatewayProgram,
    workers: list[WorkerProgram],
) -> None:
    with psycopg.connect(f"{own_postgres.url}/postgres", autocommit=True) as db:
        db.execute("CREATE DATABASE den")
    url, calls, connected = f"{own_postgres.url}/den", 0, list[str]()
    programs = [gateway, *workers[:2]]
    victims = itertools.cycle(programs)

    def answer(request: LoopbackRequest) -> str:
        nonlocal calls
        calls += 1
        victim = next(victims)
        if calls in {5, 9, 14} and victim.is_running:
            victim.kill()
        if calls == 20:
            with psycopg.connect(f"{own_postgres.url}/postgres") as db:
                connected.extend(name for (name,) in db.execute(_CONNECTED).fetchall())
        return answer_of(request)

    with pooler(url) as pooled:
        share(home, url, f'pooler = "{pooled}"\n')
        model.server.otherwise = answer
        async with kept_running(*programs):
            await all_answered_once_in_order(gateway)
    own = [name for name in connected if name.startswith(("denizen gateway", "denizen worker"))]
    assert 0 < len(own) <= len(programs)
    assert len(connected) <= len(own) + POOL_SIZE
