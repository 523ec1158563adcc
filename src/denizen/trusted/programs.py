"""Programs that Denizen starts itself: only from folders that a sandboxed command can't write."""

import errno
import functools
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path


def trusted_environ(environ: Mapping[str, str], *workspaces: Path) -> dict[str, str]:
    """The environment for these programs: its PATH without relative and temporary folders, and those in workspaces.

    Where none is left, the system's own: with an empty PATH the current folder is searched.
    """
    return {**environ, "PATH": _trusted_path(environ.get("PATH", ""), workspaces) or os.defpath}


def find_program(name: str, environ: Mapping[str, str], *workspaces: Path, otherwise: str = "") -> str:
    """The program's absolute path; a name with a slash stays as it is.

    `otherwise` stands in for one that isn't in a trusted folder of the environment's PATH; without, raises
    FileNotFoundError.
    """
    if "/" in name:
        return name
    try:
        return _find(name, _trusted_path(environ.get("PATH", ""), workspaces), workspaces)
    except FileNotFoundError:
        if otherwise:
            return otherwise
        raise


@functools.cache
def _trusted_path(path: str, workspaces: tuple[Path, ...]) -> str:
    temporary = {Path(folder).resolve() for folder in ("/tmp", "/var/tmp", tempfile.gettempdir())}  # noqa: S108
    folders = [
        folder
        for folder in path.split(os.pathsep)
        if Path(folder).is_absolute() and Path(folder).resolve() not in temporary and not _is_in(folder, workspaces)
    ]
    return os.pathsep.join(folders) or (os.defpath if path else "")


@functools.cache
def _find(name: str, path: str, workspaces: tuple[Path, ...]) -> str:
    for folder in path.split(os.pathsep):
        found = shutil.which(name, path=folder)
        if found and not _is_in(found, workspaces):  # it may be a link
            return found
    raise FileNotFoundError(errno.ENOENT, f"no {name} in a folder of PATH that commands can't change", name)


def _is_in(place: str, workspaces: tuple[Path, ...]) -> bool:
    """Whether it is in one of them, as it is written or as links lead. Of `/` as a workspace nothing is."""
    roots = {workspace.resolve() for workspace in workspaces} - {Path("/")}
    places = (Path(os.path.normpath(place)), Path(place).resolve())
    return any(each.is_relative_to(root) for each in places for root in roots)
