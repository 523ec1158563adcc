"""Finds the home (`$DENIZEN_HOME`, default `~/.denizen`) and the workspace."""

import contextlib
import fcntl
import os
from collections.abc import Generator, Mapping
from itertools import takewhile
from pathlib import Path

import msgspec

from denizen.config.settings import AgentSettings, Config
from denizen.errors import ConfigError


def user_folder(environ: Mapping[str, str]) -> Path:
    """The user's own home directory: `$HOME`, else what the system says."""
    return Path(environ.get("HOME") or Path.home())


def expand(path: str | Path, environ: Mapping[str, str]) -> Path:
    """`path` with a leading `~` replaced by the user's home directory."""
    path = Path(path)
    return user_folder(environ).joinpath(*path.parts[1:]) if path.parts[:1] == ("~",) else path


def find_home(environ: Mapping[str, str], cwd: Path, chosen: Path | None = None) -> Path:
    """The home: `chosen`, `$DENIZEN_HOME` or `~/.denizen`; it need not exist."""
    return (cwd / expand(chosen or environ.get("DENIZEN_HOME") or "~/.denizen", environ)).resolve()


def ensure_home(home: Path) -> None:
    """Make the home with its workspace where they are missing, for the user alone (0700). Raises ConfigError."""
    workspace = home / "workspace"
    if not workspace.is_dir():
        private_folder(home)
        private_folder(workspace)


def project_folder(home: Path, workspace: Path) -> Path:
    """The folder of the home for a project's memory and index. It need not exist."""
    import hashlib

    place = workspace.resolve()
    return home / "projects" / f"{place.name[:40]}-{hashlib.sha256(os.fsencode(place)).hexdigest()[:12]}"


def private_folder(folder: Path) -> None:
    """Make a folder and those above it for the user alone (0700); one that exists stays. Raises ConfigError."""
    if folder.is_dir():  # nearly always: spares a look at each folder above
        return
    try:
        for missing in [parent for parent in (folder, *folder.parents) if not parent.exists()][::-1]:
            missing.mkdir(mode=0o700, exist_ok=True)
        if not folder.is_dir():
            raise NotADirectoryError(0, "a file has that name")
    except OSError as error:
        raise ConfigError(f"The folder {folder} can't be created: {error.strerror}.") from error


def located(
    config: Config,
    *,
    environ: Mapping[str, str],
    cwd: Path,
    home: Path | None = None,
    workspace: Path | None = None,
) -> Config:
    """The configuration with its home, its workspace and `agent.workspace_dir` as absolute paths.

    A relative `workspace_dir` is one in the home; the default one moves with the home. Raises ConfigError.
    """
    home = find_home(environ, cwd, home or config.home)
    folder = config.agent.workspace_dir
    folder = home / ("workspace" if folder == AgentSettings().workspace_dir else expand(folder, environ))
    agent = msgspec.structs.replace(config.agent, workspace_dir=folder.resolve())
    config = msgspec.structs.replace(config, home=home, agent=agent)
    chosen = workspace or config.workspace
    found = workspace_for(cwd, config, expand(chosen, environ) if chosen else None, border=user_folder(environ))
    return msgspec.structs.replace(config, workspace=found)


def places(config: Config) -> tuple[Path, Path]:
    """The home and the workspace of a located configuration. Raises ConfigError for one that isn't."""
    if config.home is None or config.workspace is None:
        raise ConfigError("The configuration has no home and no workspace yet: load_config() or located() finds them.")
    return config.home, config.workspace


def workspace_for(cwd: Path, config: Config, flag: Path | None = None, *, border: Path | None = None) -> Path:
    """The workspace: `flag`, otherwise the git repository around `cwd`, otherwise `agent.workspace_dir`.

    The search ends at the user's home directory (`border`) and at the home, which are never taken for a repository.
    Raises ConfigError when `flag` isn't a folder, or is the home.
    """
    own = config.agent.workspace_dir
    if flag is None:
        borders = {config.home, (border or Path.home()).resolve()}
        inside = takewhile(lambda folder: folder not in borders, (cwd.resolve(), *cwd.resolve().parents))
        return next((folder for folder in inside if (folder / ".git").exists()), own)
    folder = (cwd / flag).resolve()
    if not folder.is_dir() and folder != own:  # its own is made when it is needed
        raise ConfigError(f"The workspace {folder} is not a folder. Make it, or name another with --workspace.")
    if folder == config.home:
        raise ConfigError(f"The workspace can't be {folder}: that is the home, with its keys and settings.")
    return folder


@contextlib.contextmanager
def sole_writer(home: Path) -> Generator[None]:
    """Lock the home's settings against other processes while a file is read, changed and written."""
    ensure_home(home)
    try:
        descriptor = os.open(home / ".lock", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(f"{home / '.lock'} can't be opened: {error.strerror}.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
