"""The home (`$DENIZEN_HOME`, default `~/.denizen`) and the workspace: where they are, how files there are kept."""

import contextlib
import fcntl
import os
import stat
from collections.abc import Generator, Mapping
from pathlib import Path

import msgspec

from denizen.config.settings import AgentSettings, Config
from denizen.errors import ConfigError

_MOST_BYTES = 1_000_000


def user_folder(environ: Mapping[str, str]) -> Path:
    """The user's own home directory: `$HOME`, else what the system says."""
    return Path(environ.get("HOME") or Path.home())


def expand(path: str | Path, environ: Mapping[str, str]) -> Path:
    """`path` with a leading `~` replaced by the user's home directory."""
    path = Path(path)
    return user_folder(environ).joinpath(*path.parts[1:]) if path.parts[:1] == ("~",) else path


def find_home(environ: Mapping[str, str], cwd: Path, chosen: Path | None = None) -> Path:
    """Where the home is: `chosen`, `$DENIZEN_HOME` or `~/.denizen`; it need not exist."""
    return (cwd / expand(chosen or environ.get("DENIZEN_HOME") or "~/.denizen", environ)).resolve()


def ensure_home(home: Path) -> None:
    """Make the home with its workspace where they are missing, for the user alone (0700). Raises ConfigError."""
    private_folder(home)
    private_folder(home / "workspace")


def private_folder(folder: Path) -> None:
    """Make a folder and those above it for the user alone (0700); one that exists stays. Raises ConfigError."""
    try:
        for missing in [parent for parent in (folder, *folder.parents) if not parent.exists()][::-1]:
            missing.mkdir(mode=0o700, exist_ok=True)
        if not folder.is_dir():
            raise NotADirectoryError(0, "a file is in the way")
    except OSError as error:
        raise ConfigError(f"The folder {folder} can't be made: {error.strerror}.") from error


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
    """Where the agent works: `flag`; else the git repository that `cwd` is in; else `agent.workspace_dir`.

    The search ends at the user's home directory (`border`) and at the home, which are never taken for a repository.
    Raises ConfigError when `flag` isn't a folder, or is the home.
    """
    own = config.agent.workspace_dir
    if flag is None:
        return _repository(cwd.resolve(), {config.home, (border or Path.home()).resolve()}) or own
    folder = (cwd / flag).resolve()
    if not folder.is_dir() and folder != own:  # its own is made when it is needed
        raise ConfigError(f"The workspace {folder} is not a folder. Make it, or name another with --workspace.")
    if folder == config.home:
        raise ConfigError(f"The workspace can't be {folder}: that is the home, with its keys and settings.")
    return folder


def _repository(folder: Path, borders: set[Path | None]) -> Path | None:
    for candidate in (folder, *folder.parents):
        if candidate in borders:
            return None
        if (candidate / ".git").exists():
            return candidate
    return None


def read_file(path: Path, limit: int) -> bytes | None:
    """The first `limit` bytes of a regular file; None when there is no such file.

    Anything else of that name (a folder, a pipe, a device) is not waited for. Raises OSError when it can't be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is not a regular file")
        return file.read(limit)


def read_settings(path: Path) -> bytes | None:
    """The bytes of a small file; None when there is none. Raises ConfigError when it is huge or can't be read."""
    try:
        data = read_file(path, _MOST_BYTES)
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}.") from error
    if data is not None and len(data) == _MOST_BYTES:
        raise ConfigError(f"{path} is larger than {_MOST_BYTES:,} bytes: that can't be right.")
    return data


def as_text(data: bytes, path: Path) -> str:
    """The text that a file's bytes are. Raises ConfigError with the first line that isn't UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line} is not UTF-8 text.") from error


def write_private(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, for the user alone (0600); where `path` is a link, the file that it names.

    Raises ConfigError when the disk refuses.
    """
    path = path.resolve()
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    try:
        _write_synced(temporary, data)
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise ConfigError(f"{path} can't be written: {error.strerror}.") from error


def _write_synced(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def sole_writer(home: Path) -> Generator[None]:
    """Keep other processes from changing the home's settings while a file is read, changed and written."""
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
