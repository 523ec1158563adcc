"""A PgBouncer for tests: in `transaction` mode, in front of a server that trusts whoever connects."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

_CONFIG = """
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {size}
logfile = {log}
"""
POOL_SIZE = 4
"""Connections that it makes to a database."""
_PATIENCE_S = 30.0


@contextmanager
def pooler(url: str) -> Generator[str]:
    """The URL of the same database through one that begins now, and ends with the block."""
    server, folder = urlsplit(url), Path(tempfile.mkdtemp(prefix="denizen-pgbouncer-"))
    if os.geteuid() == 0:  # it refuses root
        shutil.chown(folder, "postgres", "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        own = free.getsockname()[1]
    settings = {
        "host": server.hostname,
        "port": server.port or 5432,
        "user": server.username or _user(),
        "own": own,
        "size": POOL_SIZE,
    }
    (folder / "pgbouncer.ini").write_text(_CONFIG.format(log=folder / "pgbouncer.log", **settings))
    root = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    program = shutil.which("pgbouncer") or "pgbouncer"
    with subprocess.Popen([*root, program, "-q", str(folder / "pgbouncer.ini")], cwd="/") as process:
        try:
            _wait_until_it_listens(own)
            yield f"postgresql://{settings['user']}@127.0.0.1:{own}{server.path}"
        finally:
            process.terminate()
    shutil.rmtree(folder)


def _user() -> str:
    return os.environ.get("PGUSER") or os.environ.get("USER") or "root"


def _wait_until_it_listens(port: int) -> None:
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
        else:
            return
