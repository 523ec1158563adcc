"""Where commands run: the strongest sandbox that works on this machine."""

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from denizen.config.settings import SandboxSettings
from denizen.errors import DenizenError
from denizen.ports import Sandbox
from denizen.tools.sandbox.bwrap import Bubblewrap
from denizen.tools.sandbox.landlock import Landlock, LandlockAlone
from denizen.tools.sandbox.unconfined import Unconfined

__all__ = ["Bubblewrap", "Landlock", "LandlockAlone", "Unconfined", "choose_sandbox", "problem_with"]

_PATIENCE = 10.0
"""Seconds that a sandbox may take to show that it works."""


def choose_sandbox(
    settings: SandboxSettings, environ: Mapping[str, str], home: Path, secrets: Mapping[str, str] | None = None
) -> Bubblewrap | Landlock | Unconfined:
    """Bubblewrap where it works, else Landlock with namespaces or alone, else none.

    Commands never see `home`, Denizen's own, nor what is in `secrets`, by their places.
    """
    for kind in (Bubblewrap, Landlock, LandlockAlone):
        sandbox = kind(settings, environ, home, secrets)
        if not problem_with(sandbox):
            return sandbox
    return Unconfined(settings, environ, secrets)


def problem_with(sandbox: Sandbox) -> str:
    """Why the sandbox doesn't work on this machine, found by running a command in it; empty: it works."""
    with tempfile.TemporaryDirectory() as workspace:
        try:
            trial = sandbox.wrap(["true"], workspace=Path(workspace))
            ran = subprocess.run(trial.argv, env=trial.environ, capture_output=True, timeout=_PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired, DenizenError) as error:
            return str(error)
    return ran.stderr.decode(errors="replace").strip() or f"exit code {ran.returncode}" if ran.returncode else ""
