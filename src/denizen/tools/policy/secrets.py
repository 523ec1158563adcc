"""Restoring secrets: one that was redacted for the model goes back to where it came from, and nowhere else."""

import re
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from denizen.config.redact import MARK, Redactor
from denizen.config.rules import all_arguments
from denizen.errors import ToolRefused
from denizen.messages import ToolCall
from denizen.tools.files.workspace import Workspace
from denizen.tools.policy.call_files import files_of, meant_by_patch

_MARKS_STAY = frozenset({"remember", "forget"})  # tools whose marks stay marks: the memory holds no secrets
_MAX_FILE_BYTES = 5_000_000  # bytes of a file in which a secret is looked for
_BETWEEN_WORDS = re.compile(r"[\s;|&<>()'\"`=]+")


def restore_secrets(
    call: ToolCall, files: Workspace, redactor: Redactor, lets_in: Callable[[str], bool]
) -> dict[str, Any]:
    """The call's arguments as the tool gets them: with the secrets that their marks stand for.

    A secret goes into a file that holds it, into a command that names such a file, and where a rule of the user's
    `lets_in` its mark; a mark that the file holds as it is stays one. Raises ToolRefused for any other mark.
    """
    if call.name in _MARKS_STAY or not MARK.search(all_arguments(call.args)):
        return call.args
    workspace = Path(files.root)
    match call.args:  # the texts that the call writes, each with the files that it goes into
        case {"patch": str(patch)}:
            from denizen.tools.patching.parse import read_patch

            parts = read_patch(patch)
            lines = ["\n".join(line for hunk in part.hunks for _, line in hunk.lines) for part in parts]
            targets = [*zip(lines, (meant_by_patch(part, workspace) for part in parts), strict=True)]
        case {"command": str(command)}:
            targets = [(command, [*dict.fromkeys(filter(None, _BETWEEN_WORDS.split(command)))])]
        case args:
            targets = [(all_arguments(args), files_of(call, workspace))]
    wanted, literal = set[str](), set[str]()
    for text, names in targets:
        contents: list[bytes] = []
        for name in names:
            with suppress(ToolRefused), files.at(name) as place, place.open() as file:
                contents.append(file.read(_MAX_FILE_BYTES))
        for mark in MARK.findall(text):
            secret = redactor.secret(mark)
            if secret and any(secret.encode() in content for content in contents):
                wanted.add(mark)
            elif any(mark.encode() in content for content in contents):
                literal.add(mark)
            elif secret and lets_in(mark):
                wanted.add(mark)
            elif secret:
                raise ToolRefused(
                    f"{mark} stands for a secret. It is put back only into a file that holds it, or into a command "
                    "that names such a file; a policy rule of the user's can allow other places. Leave it out, or say "
                    "what you need"
                )
            else:
                raise ToolRefused(
                    f"{mark} stands for a secret that isn't known here: ask the user for it, or leave "
                    "that part as it is"
                )
            if "command" in call.args and mark in wanted and shlex.quote(secret) != secret:
                raise ToolRefused(
                    f"{mark} contains characters that are special to a shell: change the file with write or edit"
                )
    if wanted & literal:
        raise ToolRefused("one file holds the secret and another its mark: change them in calls of their own")
    return redactor.put_back(call.args, wanted)
