"""Which files a call is about."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from denizen.errors import ToolRefused
from denizen.messages import ToolCall

if TYPE_CHECKING:
    from denizen.tools.patching.parse import FilePatch


def files_of(call: ToolCall, workspace: Path) -> Sequence[str]:
    """The files that a call is about: its `path`, those of a patch, and of symbols."""
    args = {name: value for name, value in call.args.items() if isinstance(value, str)}
    targets = [args[name] for name in ("path", "target") if name in args]
    targets += [args["content"]] if args.get("action") == "move" and "content" in args else []
    names = [*targets, *(file_of(target, workspace) for target in targets)]
    if patch := args.get("patch"):
        from denizen.tools.patching.parse import read_patch

        with suppress(ToolRefused):  # a patch that can't be read does nothing
            names += [path for file in read_patch(patch) for path in meant_by_patch(file, workspace)]
    return [*dict.fromkeys(names)]


def meant_by_patch(file: "FilePatch", workspace: Path) -> list[str]:
    """The paths that a part of a patch is about."""

    def is_there(name: str) -> bool:
        return os.path.exists(f"{workspace}/{name}")  # noqa: PTH110 (may be no path at all)

    return [file.meant(name, is_there) for name in (file.old, file.new) if name is not None]


def file_of(target: str, workspace: Path) -> str:
    """The file of `FILE/Symbol`; the whole target if there is no such file."""
    parts = target.split("/")
    paths = ("/".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((path for path in paths if path and os.path.isfile(workspace / path)), target)  # noqa: PTH113 (no path?)
