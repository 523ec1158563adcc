"""A group of agents: the folder that says who belongs to it, and the files in which its processes share what they know.

Those are in the home, in `groups/<name>-<hash>/`: `lock`, held by the process that runs the group, and `<agent>.json`
for each agent, written whole whenever it changes.
"""

import dataclasses
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from denizen.config.check import check, convert
from denizen.config.env import fill_in, read_dotenv
from denizen.config.files import read_settings, write_private
from denizen.config.home import find_home
from denizen.config.lock_file import holder_of
from denizen.config.toml import SettingsFile
from denizen.errors import ConfigError
from denizen.worlds.moo.folder import AgentFolder, open_folder
from denizen.worlds.moo.listener import STALLED_AFTER_SLOW_CYCLES, Status, Tally, slow_cycle
from denizen.worlds.moo.token_pages import avatar

GROUP = "group.toml"


class GroupSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The members of a group, and how it runs: `group.toml`."""

    agents: list[str] = []
    """The directories of its agents, in the folder."""
    chain: list[str] = []
    """The players who pass the token on, in order; empty: the agents' own settings count."""
    foreman: str = "Foreman"
    """The player who begins the chain."""
    chain_secret: str = ""
    """The secret that signs the chain's pages, best as a reference: `"${MOO_CHAIN_SECRET}"`."""
    processes: Literal["one", "each"] = "one"
    """Whether the agents run in one process, or each in its own."""
    restarts: Annotated[int, msgspec.Meta(ge=0)] = 5
    """Restarts in a row of an agent that fails."""
    stale_seconds: Annotated[float, msgspec.Meta(gt=0)] = 600.0
    """Seconds without a finished cycle after which an agent that isn't waiting counts as stale."""


class AgentState(msgspec.Struct, frozen=True):
    """The state of an agent in a group. Times are POSIX seconds; `tally` sums its runs since the group's start."""

    life: Literal["starting", "playing", "fallen", "gave up", "stopped"] = "starting"
    since: float = 0.0
    doing: Status = "away"
    token: str = ""
    restarts: int = 0
    problem: str = ""
    tally: Tally = Tally()

    def cycle_age(self, now: float) -> float:
        """Seconds since its last finished cycle, or since it began, where that was later."""
        return now - max(self.tally.ended_at, self.since)

    def is_stale(self, now: float, seconds: float) -> bool:
        """Whether it has fallen, or finishes no cycle for that long and three slow ones, though it isn't waiting."""
        is_late = self.cycle_age(now) > max(seconds, STALLED_AFTER_SLOW_CYCLES * slow_cycle(self.tally.seconds))
        return self.life not in {"starting", "playing"} or (is_late and self.doing != "waiting")


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """A group, as its folder says; `shared` is where its files are in the home."""

    path: Path
    settings: GroupSettings
    shared: Path

    @property
    def lock(self) -> Path:
        """The file that is locked by the process that runs it."""
        return self.shared / "lock"

    @property
    def runner(self) -> int:
        """The id of the process that runs it; 0 if none does."""
        return holder_of(self.lock)

    def members(self, **options: Any) -> Sequence[AgentFolder]:
        """Its agents' directories, read; `options` as for `open_folder`. Raises ConfigError, also for the chain."""
        folders = [self.member(self.path / name, **options) for name in self.settings.agents]
        players = {avatar(folder.settings.user) for folder in folders}
        if missing := [name for name in self.settings.chain if avatar(name) not in players]:
            raise ConfigError(f"{self.path / GROUP}: chain names {', '.join(missing)}, but no agent plays that player.")
        return folders

    def member(self, path: Path, **options: Any) -> AgentFolder:
        """The directory of one of its agents, read, with the group's chain. Raises ConfigError."""
        folder, own = open_folder(path, **options), self.settings
        chain = {"token_chain": own.chain, "foreman": own.foreman, "chain_secret": own.chain_secret}
        settings = msgspec.structs.replace(folder.settings, **(chain if own.chain else {}))
        return dataclasses.replace(folder, settings=settings)

    def states(self) -> Mapping[str, AgentState]:
        """The state of each agent, now or when the group ran last. Raises ConfigError for a file that can't be read."""
        found: dict[str, AgentState] = {}
        for name in self.settings.agents:
            path = self.shared / f"{name}.json"
            try:
                data = read_settings(path)
                found[name] = msgspec.json.decode(data, type=AgentState) if data else AgentState(life="stopped")
            except msgspec.DecodeError as error:
                raise ConfigError(f"{path} can't be read: {error}. Remove it.") from error
        return found

    def write_state(self, name: str, state: AgentState) -> None:
        """Let other processes see how an agent is. Raises ConfigError when the disk refuses."""
        write_private(self.shared / f"{name}.json", msgspec.json.encode(state), sync=False)


def open_group(path: Path, environ: Mapping[str, str] | None = None) -> Group:
    """Read the folder of a group. Raises ConfigError with a line for each mistake in its group.toml."""
    path = path.resolve()
    if not (path / GROUP).is_file():
        raise ConfigError(f"{path} isn't a group: it has no {GROUP}, which lists its agents.")
    home = find_home(os.environ if environ is None else environ, Path.cwd())
    variables = {**read_dotenv(home), **(os.environ if environ is None else environ)}
    file = SettingsFile.read(path / GROUP)
    check(file, GroupSettings, variables, {})
    settings = convert(fill_in(dict(file.data), variables), GroupSettings)
    wrong = [name for name in settings.agents if Path(name).name != name or settings.agents.count(name) > 1]
    if wrong or not settings.agents:
        names = ", ".join(dict.fromkeys(wrong)) or "none"
        raise ConfigError(f"{path / GROUP}: agents lists {names}: list directories of this folder, each once.")
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
    return Group(path, settings, home / "groups" / f"{path.name[:40]}-{digest}")
