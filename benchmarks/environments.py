"""The peers' virtual environments: one each, made on first use from the pinned requirements, kept in `.cache`."""

import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent


class Absent(Exception):
    """A peer cannot be installed here; the message says why."""


def python_of(name: str) -> Path:
    """The interpreter of a peer's environment, installed now if it wasn't; raises `Absent`."""
    home = HERE / ".cache" / "environments" / f"{name}-{sys.version_info.major}.{sys.version_info.minor}"
    lock = HERE / "peers" / "locks" / f"{name}.txt"
    python, installed = home / "bin" / "python", home / "installed.txt"
    if not (installed.exists() and installed.read_bytes() == lock.read_bytes()):
        print(f"installing {name} …", file=sys.stderr)
        venv.create(home, with_pip=True, clear=True)
        _install(python, lock)
        installed.write_bytes(lock.read_bytes())
    return python


def _install(python: Path, lock: Path) -> None:
    command = [python, "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps", "--requirement", lock]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        errors = [line for line in done.stdout.splitlines() if line.startswith("ERROR")] or ["pip failed"]
        raise Absent(errors[-1])


def version_of(python: Path, package: str) -> str:
    """The installed version of `package`; raises `Absent`."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Absent("not installed")
    return done.stdout.strip()
