"""The files that a call is about."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from denizen.errors import ToolRefused
from denizen.messages import ToolCall
from denizen.tools.patching.parse import FilePatch, read_patch
from denizen.tools.risk import file_of


def files_of(call: ToolCall, workspace: Path) -> Sequence[str]:
    """The files that a call is about: its `path`, those of a patch, and of symbols."""
    args = {name: value for name, value in call.args.items() if isinstance(value, str)}
    targets = [args[name] for name in ("path", "target") if name in args]
    targets += [args["content"]] if args.get("action") == "move" and "content" in args else []
    names = [*targets, *(file_of(target, workspace) for target in targets)]
    with suppress(ToolRefused):  # a patch that can't be read does nothing
        names += [path for file in read_patch(args.get("patch") or "") for path in meant_by_patch(file, workspace)]
    return [*dict.fromkeys(names)]


def meant_by_patch(file: FilePatch, workspace: Path) -> list[str]:
    """The paths that a part of a patch is about."""

    def is_there(name: str) -> bool:
        return os.path.exists(f"{workspace}/{name}")  # noqa: PTH110 (may be no path at all)

    return [file.meant(name, is_there) for name in (file.old, file.new) if name is not None]
