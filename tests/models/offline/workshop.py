"""The repository that the offline model is asked about, with sources in five languages."""

import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

from denizen import RunResult

Ask = Callable[..., Awaitable[RunResult]]
WORKSHOP = Path(__file__).parents[2] / "data/offline/workshop"


def commit(folder: Path, message: str) -> None:
    """Commit all that is in it."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)


def git(folder: Path, *words: str) -> None:
    """Run git there."""
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)
