"""Packages that only some features need."""

import re
import shlex
import sys
from importlib.metadata import requires


def how_to_install(extra: str) -> str:
    """The command that installs what an extra needs for the Python that runs this, however Denizen came here."""
    needs = (need.partition(";") for need in requires("denizen") or ())
    wanted = [name.strip() for name, _, when in needs if re.search(rf"extra == ['\"]{extra}['\"]", when)]
    return shlex.join([sys.executable, "-m", "pip", "install", *wanted])
