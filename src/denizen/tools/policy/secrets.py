"""Restoring secrets: one that was redacted for the model goes back to where it came from, and nowhere else."""

import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from denizen.config.pattern import pattern
from denizen.config.redact import MARK, Redactor
from denizen.config.rules import all_arguments
from denizen.errors import ToolRefused
from denizen.messages import ToolCall
from denizen.tools.files.workspace import Workspace
from denizen.tools.policy.call_files import files_of, meant_by_patch

_TOOLS_KEEPING_MARKS = frozenset({"remember", "forget"})  # tools whose marks stay marks: the memory holds no secrets
_MAX_FILE_BYTES = 5_000_000  # of a file in which a secret is looked for
_BETWEEN_WORDS = pattern(r"[\s;|&<>()'\"`=]+")


class _Writing(msgspec.Struct, frozen=True):
    """A text that a call writes, and the files that it goes into."""

    text: str
    files: Sequence[str]


class _Fate(Enum):
    RESTORED = "the secret goes in its place"
    KEPT = "it stays a mark, as in the file"


def restore_secrets(
    call: ToolCall, files: Workspace, redactor: Redactor, lets_in: Callable[[str], bool]
) -> dict[str, Any]:
    """The call's arguments as the tool gets them: with the secrets that their marks stand for.

    A secret goes into a file that holds it, into a command that names such a file, and wherever a user's rule
    `lets_in` its mark; a mark that the file itself holds stays one. Raises ToolRefused for any other mark.
    """
    if call.name in _TOOLS_KEEPING_MARKS or not MARK.search(all_arguments(call.args)):
        return call.args
    fates: dict[str, set[_Fate]] = {}
    for writing in _writings(call, Path(files.root)):
        contents = _contents(files, writing.files)
        for mark in MARK.findall(writing.text):
            secret = redactor.secret(mark)
            fate = _fate_of(mark, secret, contents, lets_in)
            if fate is _Fate.RESTORED and "command" in call.args and shlex.quote(secret) != secret:
                raise ToolRefused(
                    f"{mark} contains characters that are special to a shell: change the file with write or edit"
                )
            fates.setdefault(mark, set()).add(fate)
    if any(len(each) > 1 for each in fates.values()):
        raise ToolRefused("one file holds the secret and another its mark: change them in separate calls")
    return redactor.put_back(call.args, {mark for mark, each in fates.items() if _Fate.RESTORED in each})


def _writings(call: ToolCall, workspace: Path) -> list[_Writing]:
    match call.args:
        case {"patch": str(patch)}:
            from denizen.tools.patching.parse import read_patch

            writings: list[_Writing] = []
            for part in read_patch(patch):
                text = "\n".join(line for hunk in part.hunks for _, line in hunk.lines)
                writings.append(_Writing(text, meant_by_patch(part, workspace)))
            return writings
        case {"command": str(command)}:
            words = filter(None, _BETWEEN_WORDS.split(command))
            return [_Writing(command, [*dict.fromkeys(words)])]
        case args:
            return [_Writing(all_arguments(args), files_of(call, workspace))]


def _contents(files: Workspace, names: Sequence[str]) -> list[bytes]:
    """The beginnings of those files that can be read."""
    contents: list[bytes] = []
    for name in names:
        with suppress(ToolRefused), files.at(name) as place, place.open() as file:
            contents.append(file.read(_MAX_FILE_BYTES))
    return contents


def _fate_of(mark: str, secret: str, contents: Sequence[bytes], lets_in: Callable[[str], bool]) -> _Fate:
    """What becomes of a mark in a text for files with these contents. Raises ToolRefused if it must not be there."""
    if secret and any(secret.encode() in content for content in contents):
        return _Fate.RESTORED
    if any(mark.encode() in content for content in contents):
        return _Fate.KEPT
    if not secret:
        raise ToolRefused(
            f"{mark} stands for a secret that isn't known here: ask the user for it, or leave that part as it is"
        )
    if not lets_in(mark):
        raise ToolRefused(
            f"{mark} stands for a secret. It is put back only into a file that holds it, or into a command "
            "that names such a file; the user can allow other places by a policy rule. Leave it out, or say "
            "what you need"
        )
    return _Fate.RESTORED
