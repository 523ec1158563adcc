"""Commands that end with all that they started."""

import sys
from collections.abc import Sequence
from pathlib import Path

_LAUNCHER = Path(__file__).with_name("launch.py")


def supervised(argv: Sequence[str], options: Sequence[str] = ()) -> list[str]:
    """The command run by `launch.py`, which adopts and ends what escapes its process group; as it is outside Linux."""
    if sys.platform != "linux" or not sys.executable:
        return [*argv]
    # the very interpreter, not a link to it that a command could change in a workspace's own environment
    return [str(Path(sys.executable).resolve()), "-I", "-S", str(_LAUNCHER), *options, "--", *argv]
