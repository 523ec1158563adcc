"""A server's program, run by a test in a folder of its own."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.worlds.moo.djangomoo import wait_for_port


@contextmanager
def running(command: list[str], folder: Path, *ports: int) -> Generator[subprocess.Popen[bytes]]:
    """The program, once it listens on these ports of 127.0.0.1; it is killed at the end of the block."""
    with (folder / "output.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        for port in ports:
            wait_for_port(port)
        yield process
    finally:
        process.kill()
        process.wait()


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and localhost that only its own server vouches for, and its key."""
    certificate, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *names, *files], check=True, capture_output=True)
    return certificate, key
