"""A PostgreSQL server for tests: the one that runs here, or Debian's own, begun for them."""

import fcntl
import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

RUNNING = "postgresql://127.0.0.1:5432"
_BINARIES = "/usr/lib/postgresql"


def binaries() -> Path | None:
    """Where the newest installed server's programs are; None: none is installed."""
    if found := shutil.which("initdb"):
        return Path(found).parent
    versions = [path.parent for path in Path(_BINARIES).glob("*/bin/initdb")]
    return max(versions, key=lambda path: float(path.parent.name), default=None)


@dataclass(frozen=True)
class OwnServer:
    """A server whose files are in `folder`, and which a test may stop and start. It listens on 127.0.0.1."""

    folder: Path
    programs: Path
    port: int
    options: str = "-c fsync=off"

    @property
    def url(self) -> str:
        """Where it is."""
        return f"postgresql://denizen@127.0.0.1:{self.port}"

    @classmethod
    def create(cls, programs: Path, options: str = "-c fsync=off") -> "OwnServer":
        """A new one, which runs with these options."""
        folder = Path(tempfile.mkdtemp(prefix="denizen-postgres-"))
        if os.geteuid() == 0:  # the server refuses root
            shutil.chown(folder, "postgres", "postgres")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            server = cls(folder, programs, free.getsockname()[1], options)
        server._run("initdb", "-A", "trust", "-U", "denizen", "-N", "--locale=C.UTF-8", "-D", str(server._data))
        server.start()
        return server

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"-c listen_addresses=127.0.0.1 -c port={self.port} -c unix_socket_directories='' {self.options}"
        log = str(self.folder / "log")
        self._run("pg_ctl", "start", "-w", "-D", str(self._data), "-l", log, "-o", options)

    def stop(self) -> None:
        """Stop it at once, as a machine that loses power."""
        self._run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", str(self._data))

    def remove(self) -> None:
        """Stop it where it runs, and delete its files."""
        with suppress(RuntimeError):
            self.stop()
        shutil.rmtree(self.folder)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _run(self, program: str, *args: str) -> None:
        root = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        command = [*root, str(self.programs / program), *args]
        # its output goes to a file: the server keeps what it inherits open
        with (self.folder / f"{program}.out").open("wb") as output:
            done = subprocess.run(command, check=False, stdout=output, stderr=output, cwd="/")
        if done.returncode:
            raise RuntimeError(f"{program}: {(self.folder / f'{program}.out').read_text()}")


def running_server(shared: Path) -> str:
    """The URL of a server where databases may be made; one is begun where none runs. Empty: none is installed.

    `shared` is a folder that all processes of this test run have in common.
    """
    import psycopg

    with suppress(psycopg.Error), psycopg.connect(f"{RUNNING}/postgres", connect_timeout=2) as connection:
        allowed = connection.execute("SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user")
        if (row := allowed.fetchone()) and row[0]:
            return RUNNING
    if (programs := binaries()) is None:
        return ""
    with (shared / "postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        address = shared / "postgres.url"
        if not address.exists():
            server = OwnServer.create(programs)
            (shared / "postgres").symlink_to(server.folder)
            address.write_text(server.url)
        return address.read_text()


def remove_begun(shared: Path) -> None:
    """Remove the server that `running_server` has begun, if any."""
    if (shared / "postgres").exists() and (programs := binaries()):
        OwnServer((shared / "postgres").resolve(), programs, 0).remove()


def new_database(server: str, template: str = "template1") -> str:
    """The URL of a new database there, a copy of `template`: empty by default."""
    import psycopg

    name = f"denizen_test_{uuid4().hex[:12]}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
    return f"{server}/{name}"


def has_database(server: str, name: str) -> bool:
    """Whether there is a database of that name."""
    import psycopg

    with psycopg.connect(f"{server}/postgres") as connection:
        return connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchone() is not None


def rename_database(url: str, name: str) -> None:
    """Give it another name, and if that is taken, drop it."""
    import psycopg

    server, _, old = url.rpartition("/")
    try:
        with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {old} RENAME TO {name}".encode())
    except psycopg.errors.DuplicateDatabase:
        drop_database(url)


def empty_database(url: str) -> None:
    """Remove all that is in it, whoever uses it: a hundred times faster than a new one."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")


def drop_database(url: str) -> None:
    """Remove it, whoever uses it."""
    import psycopg

    server, _, name = url.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
