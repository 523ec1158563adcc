"""The processes of a run: the loopback server and one process per contender, told what to do over pipes."""

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.environments import HERE, python_of

QUIET = {  # nobody reports home or traces while being measured
    "AGNO_TELEMETRY": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "LANGSMITH_TRACING": "false",
    "OTEL_SDK_DISABLED": "true",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One contender: its name in the tables, its distribution, its driver, and what a user of it imports."""

    name: str
    package: str
    module: str
    imports: str
    own_environment: bool = True

    def python(self) -> Path:
        """The interpreter it runs on; raises `Absent`."""
        return python_of(self.module.rpartition(".")[2]) if self.own_environment else Path(sys.executable)


class Broken(Exception):
    """A contender's process ended or failed; the message holds the end of what it said."""


class Process:
    """A contender's process, with a home of its own."""

    def __init__(self, entry: Entry, base_url: str, home: Path) -> None:
        place = home / entry.name
        place.mkdir()
        self._log = (home / f"{entry.name}.log").open("w+b")
        self._child = subprocess.Popen(
            [entry.python(), "-m", entry.module, base_url, place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=HERE.parent,
            env=environment(place),
        )
        self.pid = self._child.pid
        keep_on_core(self.pid, -1)
        self.stores: list[str] = []
        self.resident_mb = 0.0

    @property
    def best_store(self) -> str:
        """Where it keeps a session that goes on: a driver names that one last."""
        return self.stores[-1]

    def wait_until_built(self) -> None:
        """Learn where it can keep sessions, and its size once its agent is built; raises `Broken`."""
        ready = self._read()
        self.stores, self.resident_mb = ready["stores"], ready["rss_mb"]

    def ask(self, do: str, **arguments: object) -> Mapping[str, Any]:
        """Have it carry out one command; raises `Broken`."""
        self.tell(do, **arguments)
        return self._read()

    def tell(self, do: str, **arguments: object) -> None:
        """Give it a command without waiting for the reply."""
        assert self._child.stdin
        self._child.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
        self._child.stdin.flush()

    def _read(self) -> Mapping[str, Any]:
        assert self._child.stdout
        if line := self._child.stdout.readline():
            return json.loads(line)
        self._log.seek(0)
        said = self._log.read().decode(errors="replace").strip().splitlines()
        raise Broken(said[-1] if said else "it ended without a word")

    def close(self) -> None:
        self._child.kill()
        self._child.communicate()
        self._log.close()


def environment(home: Path) -> dict[str, str]:
    """The environment of a measured process: quiet, and at home in `home`."""
    return {**os.environ, **QUIET, "HOME": str(home)}


class Server:
    """The loopback server, seen from the runner."""

    def __init__(self, port: int) -> None:
        self.root = f"http://127.0.0.1:{port}"

    def url(self, how: str) -> str:
        """A base URL up to `/v1`; `how` is what the server does, as `loopback` lists it."""
        return f"{self.root}/{how}/v1"

    def stats(self) -> Mapping[str, int]:
        """Requests and bytes that came since the last time."""
        return self._get("stats")

    def arrivals(self) -> Mapping[str, float]:
        """When each ticket came first, by the system's monotonic clock, since the last time."""
        return self._get("arrivals")

    def _get(self, what: str) -> Mapping[str, Any]:
        with urllib.request.urlopen(f"{self.root}/{what}") as response:
            return json.load(response)


def keep_on_core(pid: int, which: int) -> None:
    """Keep a process on the first core (0) or the last (-1), where there are several and the system can do that.

    One that is moved loses what its core had learned of it: as much as a turn costs, now and then.
    """
    if hasattr(os, "sched_setaffinity") and len(cores := sorted(os.sched_getaffinity(0))) > 1:
        os.sched_setaffinity(pid, {cores[which]})


@contextmanager
def loopback() -> Generator[Server]:
    """The loopback server, running in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.loopback"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=HERE.parent) as child:
        assert child.stdin
        assert child.stdout
        keep_on_core(child.pid, 0)
        yield Server(int(child.stdout.readline()))
        child.stdin.close()


@contextmanager
def scratch() -> Generator[Path]:
    """A directory on the disk that the repository is on: a temporary one may be memory, and sync for nothing."""
    cache = HERE / ".cache"
    cache.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, ignore_cleanup_errors=True) as home:
        yield Path(home)
