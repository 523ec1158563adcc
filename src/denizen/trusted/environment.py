"""The Python environment that Denizen runs from: if it is in the workspace, commands can't change it."""

import functools
import sys
from collections.abc import Sequence
from pathlib import Path

_ADVICE = "Install Denizen separately: `uv tool install denizen`, or `pipx install denizen`."


@functools.cache
def own_environment(workspace: Path) -> Sequence[Path]:
    """What of it is in the workspace: the environment, the Python that it was made with, folders of packages."""

    def inside(path: str) -> list[Path]:
        place = Path(path)
        return [each for each in {place, place.parent.resolve() / place.name} if workspace in each.parents]

    packages = [place for path in sys.path for place in inside(path) if any(place.glob("*.dist-info"))]
    return sorted({*inside(sys.prefix), *inside(sys.base_prefix), *packages})


def environment_note(output: str, workspace: Path) -> str:
    """A note that commands can't change the environment, if the output shows that one tried; else empty."""
    for place in own_environment(workspace):
        if f"{place.relative_to(workspace)}/" in output:
            return f"[{place.name} can't be changed by commands, because Denizen runs from it. {_ADVICE}]"
    return ""


def editable_install_warning(workspace: Path) -> str:
    """A warning if Denizen is an editable installation in the workspace, which commands can change; else empty."""
    code = Path(__file__).resolve().parents[1]
    if workspace not in code.parents or any(place in code.parents for place in own_environment(workspace)):
        return ""
    return f"Commands can change Denizen itself: it runs from {code}, in the workspace. {_ADVICE}"
