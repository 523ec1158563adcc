"""What every test relies on: nothing of the developer's environment, and programs that must be there on CI."""

import functools
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from typing import NoReturn

import pytest
from hypothesis import settings
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests import postgres, warm
from tests.worlds.chat.delivery.channels.servers import synapse_server
from tests.worlds.moo import djangomoo, evennia_server

from denizen.config.settings import SandboxSettings
from denizen.models.profiles import HEALTH, LEARNED_LIMITS
from denizen.tools.sandbox.environment import CommandEnvironment

settings.register_profile("patient", settings.default, deadline=None)
settings.load_profile("patient")

_LONGEST = 600
"""Seconds of one test, on a slow machine that does other things meanwhile."""
_IS_ONE_OF_MANY = "PYTEST_XDIST_WORKER" in os.environ


@pytest.fixture(autouse=True, scope="session")
def no_outside_configuration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A developer's keys, services and home stay out of the tests, also out of the programs that they start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts the tests with `&` has it ignored
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - CommandEnvironment(SandboxSettings(), os.environ, {}).variables.keys():
            patch.delenv(name)
        patch.setenv("TZ", "UTC")
        time.tzset()
        patch.setenv("DENIZEN_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(autouse=True)
def forgotten_servers() -> Iterator[None]:
    """What one test's servers taught the process, and how they were, is nothing to the next: ports come again."""
    yield
    HEALTH.clear()
    LEARNED_LIMITS.clear()


@pytest.fixture(scope="session")
def warm_python() -> Iterator[list[str]]:
    """In place of `python` in a command, starts the program much faster: `tests/warm.py`."""
    with warm.starter() as command:
        yield command


Drive = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def drive(warm_python: list[str]) -> Drive:
    """`drive(FILE, argument, …)`: run a Python program that may kill itself."""

    def run(*command: object) -> subprocess.CompletedProcess[str]:
        words = [*warm_python, *map(str, command)]
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)

    return run


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a PostgreSQL server where databases may be made; without one the tests are skipped, and fail on CI."""
    base = tmp_path_factory.getbasetemp()
    url = postgres.running_server(base.parent if _IS_ONE_OF_MANY else base)
    if not url:
        give_up("PostgreSQL")
    return url


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The servers that the tests have begun end with them: with many processes, with the first one."""
    factory: pytest.TempPathFactory | None = getattr(session.config, "_tmp_path_factory", None)
    if factory and "PYTEST_XDIST_WORKER" not in os.environ:
        djangomoo.remove_started(factory.getbasetemp())
        evennia_server.remove_started(factory.getbasetemp())
        synapse_server.remove_started(factory.getbasetemp())
        postgres.remove_begun(factory.getbasetemp())


@pytest.fixture(scope="session")
def postgres_database(postgres_server: str) -> Iterator[str]:
    """A database of this process's own."""
    url = postgres.new_database(postgres_server)
    yield url
    postgres.drop_database(url)


@pytest.fixture
def postgres_url(postgres_database: str) -> str:
    """An empty database of the test's own."""
    postgres.empty_database(postgres_database)
    return postgres_database


@pytest.fixture
def moo_server(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[djangomoo.DjangoMoo]:
    """A DjangoMOO server, for this test alone while it runs; its world is as earlier tests left it."""
    base = tmp_path_factory.getbasetemp()
    try:
        with djangomoo.running_server(base.parent if _IS_ONE_OF_MANY else base, postgres_server) as server:
            yield server
    except djangomoo.NotInstallable as error:
        give_up(f"the DjangoMOO server ({error})")


@pytest.fixture
def evennia(tmp_path_factory: pytest.TempPathFactory) -> Iterator[evennia_server.Evennia]:
    """An Evennia server, for this test alone while it runs; its world is as earlier tests left it."""
    base = tmp_path_factory.getbasetemp()
    try:
        with evennia_server.running_server(base.parent if _IS_ONE_OF_MANY else base) as server:
            yield server
    except djangomoo.NotInstallable as error:
        give_up(f"the Evennia server ({error})")


@pytest.fixture
def synapse(tmp_path_factory: pytest.TempPathFactory) -> synapse_server.Synapse:
    """A Matrix home server, shared by all tests of the run."""
    base = tmp_path_factory.getbasetemp()
    try:
        return synapse_server.running_server(base.parent if _IS_ONE_OF_MANY else base)
    except djangomoo.NotInstallable as error:
        give_up(f"the Synapse server ({error})")


@pytest.fixture
def own_postgres() -> Iterator[postgres.OwnServer]:
    """A server of the test's own, which it may stop and start."""
    programs = postgres.binaries()
    if programs is None:
        give_up("PostgreSQL")
    server = postgres.OwnServer.create(programs)
    yield server
    server.remove()


@pytest.fixture(scope="session")
def exporter() -> InMemorySpanExporter:
    """Where the spans of the whole process go: a process has one provider of tracers."""
    memory, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    trace.set_tracer_provider(provider)
    return memory


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Iterator[InMemorySpanExporter]:
    """The spans of this test."""
    exporter.clear()
    yield exporter
    exporter.clear()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """`@pytest.mark.needs("bwrap")` skips where that program doesn't work; with CI=true it fails instead."""
    for program in [name for mark in item.iter_markers("needs") for name in mark.args]:
        if not _works(program):
            give_up(program)


def give_up(program: str) -> NoReturn:
    """Skip the test, or on CI fail it."""
    skip_or_fail = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
    skip_or_fail(f"{program} is missing or doesn't work here")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """A test that hangs fails and shows where; ending its process would hide which one it was."""

    def fail(*_: object) -> None:
        raise TimeoutError(f"the test took longer than {_LONGEST} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(_LONGEST)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


_TRIALS = {
    "bwrap": ["--unshare-all", "--ro-bind", "/", "/", "true"],  # the kernel may forbid it
    "chromium": ["--version"],  # a snap's stub fails
}
"""Arguments with which a program that is installed shows that it works."""


@functools.cache
def _works(program: str) -> bool:
    if shutil.which(program) is None:
        return False
    trial = [program, *_TRIALS[program]] if program in _TRIALS else ["true"]
    return subprocess.run(trial, check=False, capture_output=True).returncode == 0
