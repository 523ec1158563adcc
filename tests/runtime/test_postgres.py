"""What every room needs of a PostgreSQL database: tables by version, and errors that say what to do."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from tests.postgres import OwnServer

from denizen.errors import ConfigError, DenizenError, SessionError
from denizen.runtime.postgres import PostgresDatabase

FIRST, SECOND = "CREATE TABLE things (name text)", "ALTER TABLE things ADD size integer"


def refusal(url: str) -> str:
    """What is said of a database that can't be used."""
    try:
        database = PostgresDatabase(url)
        with database.explained():
            database.prepare("things", FIRST)
    except DenizenError as error:
        return str(error)
    pytest.fail("it was not refused")


def test_tables_are_made_and_brought_up_to_date(postgres_url: str) -> None:
    PostgresDatabase(postgres_url).prepare("things", FIRST)
    PostgresDatabase(postgres_url).prepare("things", FIRST, SECOND)
    database = PostgresDatabase(postgres_url)
    database.prepare("things", FIRST, SECOND)
    with database.connect() as connection:
        connection.execute("SELECT name, size FROM things")


def test_many_processes_may_begin_at_once(postgres_url: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        for each in [threads.submit(PostgresDatabase(postgres_url).prepare, "things", FIRST) for _ in range(8)]:
            each.result()


def test_tables_of_a_newer_denizen_are_left_alone(postgres_url: str) -> None:
    PostgresDatabase(postgres_url).prepare("things", FIRST, SECOND)
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:\d+/denizen_test_\w+ was written by a newer.*Update Denizen"):
        PostgresDatabase(postgres_url).prepare("things", FIRST)


def test_half_made_tables_are_not_kept(postgres_url: str) -> None:
    database = PostgresDatabase(postgres_url)
    with pytest.raises(DenizenError), database.explained():
        database.prepare("things", FIRST, "ALTER TABLE nothing ADD size integer")
    database.prepare("things", FIRST, SECOND)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:se/cret@127.0.0.1/db",
        "postgresql://ann:12/cret@127.0.0.1/db",
        "postgresql://ann:se@cret@127.0.0.1/db",
        "postgresql://ann:cret%@127.0.0.1/db",
        "postgresql://ann:cret@127.0.0.1:port/db",
        "mysql://ann:cret@127.0.0.1/db",
        "",
    ],
)
def test_malformed_url_is_refused_without_its_password(url: str) -> None:
    said = refusal(url)
    assert "postgresql://user:password@host:port/name" in said
    assert "cret" not in said


def test_server_that_does_not_run_is_named_without_the_password() -> None:
    said = refusal("postgresql://ann:secret@127.0.0.1:9/db")
    assert said.startswith("The database at 127.0.0.1:9/db: ")
    assert said.endswith("Check that it is running, and that its URL is right.")
    assert "secret" not in said


def test_unknown_database_is_named(postgres_server: str) -> None:
    assert 'database "nowhere" does not exist' in refusal(f"{postgres_server}/nowhere")


def test_user_without_the_right_to_make_tables_hears_so(own_postgres: OwnServer) -> None:
    with psycopg.connect(f"{own_postgres.url}/postgres") as connection:
        connection.execute("CREATE ROLE ann LOGIN")
    url = f"{own_postgres.url}/postgres".replace("denizen@", "ann:secret@")
    said = refusal(url)
    assert "permission denied" in said
    assert "Grant its user the right" in said
    with psycopg.connect(f"{own_postgres.url}/postgres") as connection:
        PostgresDatabase(f"{own_postgres.url}/postgres").prepare("things", FIRST)
        connection.execute("GRANT SELECT ON denizen_versions TO ann")
    PostgresDatabase(url).prepare("things", FIRST)  # they are there: nothing is to be made


def test_database_that_cannot_hold_every_text_is_refused(own_postgres: OwnServer) -> None:
    with psycopg.connect(f"{own_postgres.url}/postgres", autocommit=True) as connection:
        connection.execute("CREATE DATABASE narrow ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    assert "its encoding is LATIN1" in refusal(f"{own_postgres.url}/narrow")


def test_error_is_of_the_kind_that_the_room_raises(postgres_url: str) -> None:
    database = PostgresDatabase(postgres_url)
    with (
        pytest.raises(SessionError, match='relation "nothing" does not exist'),
        database.explained(SessionError),
        database.connect() as connection,
    ):
        connection.execute("SELECT * FROM nothing")


async def test_connection_for_the_event_loop_sees_the_same_tables(postgres_url: str) -> None:
    database = PostgresDatabase(postgres_url)
    database.prepare("things", FIRST)
    async with await database.connect_async() as connection:
        found = await connection.execute("SELECT count(*) FROM things")
        assert await found.fetchall() == [(0,)]
