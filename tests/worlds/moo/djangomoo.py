"""A real DjangoMOO server: installed once beside the tests, started once for a run of them, on 127.0.0.1 alone."""

import fcntl
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import asyncssh
import msgspec
from tests import postgres

from denizen.worlds.moo.transport import Server

HERE = Path(__file__).parent / "server"
PYTHON = "python3.11"
"""Python of the servers, whatever the tests run on: DjangoMOO runs on no other."""
CACHE = Path(__file__).parents[2] / ".cache" / f"djangomoo-{PYTHON}"
_PATIENCE = 300.0
_STARTED: list[subprocess.Popen[bytes]] = []  # they outlive who started them, and are ended by their numbers
_ENVIRON = dict(os.environ)  # as it was before the tests took most of it away: pip may need some


class NotInstallable(Exception):
    """The server can't be installed here; the message says why."""


class DjangoMoo(msgspec.Struct, frozen=True):
    """A server that runs."""

    files: str
    port: int
    redis_port: int
    database: str

    @property
    def folder(self) -> Path:
        """Where its logs, keys and process numbers are."""
        return Path(self.files)

    def address(self, user: str) -> Server:
        """Where it is, and how that player signs in."""
        return Server(port=self.port, user=user, password=f"{user}-password")

    def start_shell(self) -> None:
        """Let players in, and wait until it answers."""
        self._start("shell", _python(), HERE / "inside.py", "shell")
        wait_for_port(self.port)

    def stop_shell(self) -> None:
        """Kill the process that players are connected to."""
        self._kill("shell")

    def start(self) -> None:
        """Start all of it in a new folder, with a world of its own."""
        redis = ["redis-server", "--port", self.redis_port, "--bind", "127.0.0.1", "--save", "", "--dir", self.folder]
        self._start("redis", *redis)
        wait_for_port(self.redis_port)
        asyncssh.generate_private_key("ssh-ed25519").write_private_key(self.folder / "host_key")
        self._start("worker", _python(), HERE / "inside.py", "worker")
        self.start_shell()

    def bootstrap(self) -> None:
        """Fill its database, which is empty; it takes half a minute."""
        with (self.folder / "bootstrap.log").open("wb") as log:
            command = [_python(), HERE / "inside.py", "bootstrap"]
            subprocess.run(command, check=True, env=self._environ(), stdout=log, stderr=log)

    def remove(self) -> None:
        """End all of it."""
        for name in ("shell", "worker", "redis"):
            self._kill(name)
        postgres.drop_database(self.database)

    def _environ(self) -> dict[str, str]:
        return os.environ | {
            "CELERY_BROKER_URL": f"redis://127.0.0.1:{self.redis_port}/0",
            "CELERY_TASK_TIME_LIMIT": "30",
            "DJANGO_SETTINGS_MODULE": "settings",
            "MOO_DATABASE": self.database,
            "MOO_FOLDER": str(self.folder),
            "MOO_PORT": str(self.port),
            "OTEL_SDK_DISABLED": "true",
            "PYTHONDONTWRITEBYTECODE": "1",
            "REDIS_HOSTNAME": "127.0.0.1",
        }

    def _start(self, name: str, *command: object) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [*map(str, command)],
                env=self._environ(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )
        _STARTED.append(process)
        (self.folder / f"{name}.pid").write_text(str(process.pid))

    def _kill(self, name: str) -> None:
        file = self.folder / f"{name}.pid"
        if file.exists():
            with suppress(ProcessLookupError):
                os.killpg(int(file.read_text()), signal.SIGKILL)
            file.unlink()


@contextmanager
def running_server(shared: Path, postgres_server: str) -> Generator[DjangoMoo]:
    """The server of this run of tests, for one test at a time. Raises NotInstallable.

    `shared` is a folder that all processes of the run have in common.
    """
    with (shared / "djangomoo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        address = shared / "djangomoo.json"
        if not address.exists():
            install(CACHE, HERE / "requirements.txt")
            folder = shared / "djangomoo"
            folder.mkdir()
            world = _new_world(postgres_server, folder)
            server = DjangoMoo(str(folder), free_port(), free_port(), world)
            try:
                server.start()
            except BaseException:
                server.remove()
                shutil.rmtree(folder)
                raise
            address.write_bytes(msgspec.json.encode(server))
        yield msgspec.json.decode(address.read_bytes(), type=DjangoMoo)


def remove_started(shared: Path) -> None:
    """Remove the server that `running_server` has started, if any."""
    address = shared / "djangomoo.json"
    if address.exists():
        msgspec.json.decode(address.read_bytes(), type=DjangoMoo).remove()
        address.unlink()


def _python() -> Path:
    return CACHE / "bin" / "python"


def install(folder: Path, lock: Path) -> None:
    """Make a server's environment there, with what a file of requirements names, unless it is there.

    Raises NotInstallable.
    """
    installed = folder / "installed.txt"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "install.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if installed.exists() and installed.read_bytes() == lock.read_bytes():
            return
        python = shutil.which(PYTHON, path=_ENVIRON.get("PATH")) or sys.executable
        subprocess.run([python, "-m", "venv", "--clear", folder], env=_ENVIRON, check=True)
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        done = subprocess.run(
            [*pip, "--requirement", lock],
            env=_ENVIRON,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NotInstallable(done.stdout[-2000:])
        installed.write_bytes(lock.read_bytes())


def _new_world(postgres_server: str, folder: Path) -> str:
    """A database with the world as its bootstrap leaves it: a copy of one that stays on the PostgreSQL server."""
    parts = [(HERE / name).read_bytes() for name in ("requirements.txt", "inside.py")]
    template = f"denizen_djangomoo_{hashlib.sha256(b''.join(parts)).hexdigest()[:12]}"
    if not postgres.has_database(postgres_server, template):
        made = postgres.new_database(postgres_server)
        DjangoMoo(str(folder), 0, 0, made).bootstrap()
        postgres.rename_database(made, template)
    return postgres.new_database(postgres_server, template)


def free_port() -> int:
    """A port of this machine that nobody uses now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_for_port(port: int) -> None:
    """Until something listens there. Raises TimeoutError."""
    latest = time.monotonic() + _PATIENCE
    while True:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        if time.monotonic() > latest:
            raise TimeoutError(f"nothing listens on port {port}")
        time.sleep(0.05)
