"""A real Evennia server: a MUD that knows nothing of DjangoMOO's ways, installed and started as that one is."""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec
from tests.worlds.moo.djangomoo import PYTHON, free_port, install, wait_for_port

from denizen.worlds.moo.transport import Server

HERE = Path(__file__).parent / "server" / "evennia"
CACHE = Path(__file__).parents[2] / ".cache" / f"evennia-{PYTHON}"
PLAYERS = ("ann", "bob")
_NEW_WORLD = f"""
import time
from evennia.accounts.accounts import DefaultAccount
from evennia.server import initial_setup
from evennia.server.models import ServerConfig

initial_setup.create_objects()
initial_setup.at_initial_setup()
ServerConfig.objects.conf("last_initial_setup_step", "done")
ServerConfig.objects.conf("server_epoch", time.time())
for name in {PLAYERS}:
    account, errors = DefaultAccount.create(username=name, password=f"{{name}}-password-1")
    assert account, errors
"""
_PATIENCE = 300.0
_STARTED: list[subprocess.Popen[bytes]] = []  # they outlive who started them, and are ended by their numbers


class Evennia(msgspec.Struct, frozen=True):
    """A server in its folder, the game directory."""

    folder: str
    telnet: int
    ssh: int
    internal: int

    def address(self, user: str, transport: Literal["telnet", "ssh"], password: str = "") -> Server:
        """Where it is, and how that player signs in."""
        port = self.telnet if transport == "telnet" else self.ssh
        return Server(port=port, transport=transport, user=user, password=password or f"{user}-password-1")

    def start(self) -> None:
        """Let players in: one process holds their connections, another the world."""
        [programs] = CACHE.glob("lib/python*/site-packages/evennia")
        for name, program in (("portal", "server/portal/portal.py"), ("server", "server/server.py")):
            command = ["--nodaemon", f"--python={programs / program}", f"--pidfile=server/{name}.pid"]
            with Path(self.folder, f"{name}.log").open("ab") as log:
                _STARTED.append(
                    subprocess.Popen(
                        [CACHE / "bin" / "twistd", *command],
                        cwd=self.folder,
                        env=self._environ(),
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                )
        wait_for_port(self.telnet)
        while not self._welcomes():
            time.sleep(0.1)

    def stop(self) -> None:
        """End its processes, by their numbers."""
        for name in ("portal", "server"):
            with suppress(FileNotFoundError, ProcessLookupError):
                os.kill(int(Path(self.folder, "server", f"{name}.pid").read_text()), signal.SIGKILL)

    def run(self, *words: str) -> None:
        """Let Evennia's own program do something."""
        command = [CACHE / "bin" / "evennia", *words]
        with Path(self.folder, "log").open("ab") as log:
            subprocess.run(
                command,
                check=True,
                cwd=self.folder,
                env=self._environ(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _environ(self) -> dict[str, str]:
        return os.environ | {
            "DJANGO_SETTINGS_MODULE": "server.conf.settings",
            "EVENNIA_PORTS": f"{self.telnet},{self.ssh},{self.internal}",
            "EVENNIA_SUPERUSER_EMAIL": "keeper@example.com",
            "EVENNIA_SUPERUSER_PASSWORD": "keeper-password-1",
            "EVENNIA_SUPERUSER_USERNAME": "keeper",
            "PATH": f"{CACHE / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": self.folder,
        }

    def _welcomes(self) -> bool:
        """Whether the world answers: until then, nobody is greeted."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.telnet), timeout=5) as trial:
            heard = b""
            while data := trial.recv(4096):
                heard += data
                if b"Welcome" in heard:
                    return True
        return False


@contextmanager
def running_server(shared: Path) -> Generator[Evennia]:
    """The server of this run of tests, for one test at a time. Raises NotInstallable.

    `shared` is a folder that all processes of the run have in common.
    """
    with (shared / "evennia.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        address = shared / "evennia.json"
        if not address.exists():
            install(CACHE, HERE / "requirements.txt")
            folder = shared / "evennia"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(_game(), folder)
            server = _server_in(folder)
            try:
                server.start()
            except BaseException:
                server.stop()
                raise
            address.write_bytes(msgspec.json.encode(server))
        yield msgspec.json.decode(address.read_bytes(), type=Evennia)


def remove_started(shared: Path) -> None:
    """End the server that `running_server` has started, if any."""
    address = shared / "evennia.json"
    if address.exists():
        msgspec.json.decode(address.read_bytes(), type=Evennia).stop()
        address.unlink()


def _server_in(folder: Path) -> Evennia:
    return Evennia(str(folder), free_port(), free_port(), free_port())


def _game() -> Path:
    """A game directory with its world and players, made once; it takes half a minute."""
    game, draft = CACHE / "game", CACHE / "draft"
    with (CACHE.parent / "install.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not game.exists():
            shutil.rmtree(draft, ignore_errors=True)
            subprocess.run([str(CACHE / "bin" / "evennia"), "--init", draft.name], check=True, cwd=CACHE)
            shutil.copy(HERE / "settings.py", draft / "server" / "conf" / "settings.py")
            server = _server_in(draft)
            server.run("migrate")
            server.run("shell", "-c", _NEW_WORLD)
            draft.rename(game)
    return game
