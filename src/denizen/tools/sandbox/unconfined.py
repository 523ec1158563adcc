"""Commands as they are, where the machine has no way to confine them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from denizen.config.settings import SandboxSettings
from denizen.ports import Sandboxed
from denizen.tools.sandbox.environment import CommandEnvironment
from denizen.tools.sandbox.supervised import supervised


class Unconfined:
    """No sandbox: only the environment is scrubbed, and the policy asks before a command runs."""

    name = "none"
    promises = "Nothing is confined: commands run with all of the user's rights, but without keys in their environment."
    confines = False
    advice = "Install bubblewrap (bwrap); until then you are asked about commands."

    def __init__(
        self, settings: SandboxSettings, environ: Mapping[str, str], secrets: Mapping[str, str] | None = None
    ) -> None:
        self._passed = CommandEnvironment(settings, environ, secrets or {})

    def wrap(self, argv: Sequence[str], *, workspace: Path, network: bool = False) -> Sandboxed:
        """The command, with no more than supervision; `workspace` and `network` change nothing."""
        return Sandboxed(supervised(argv), self._passed.variables, notice=self._passed.notice)
