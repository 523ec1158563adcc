"""Groups of agents: what their folder says, and how they are kept playing."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from tests.worlds.moo.play import Watcher

from denizen.errors import ConfigError, DenizenError
from denizen.testing import FakeClock
from denizen.worlds.moo.group import AgentState, Group, open_group
from denizen.worlds.moo.listener import Facts, Tally
from denizen.worlds.moo.supervisor import Seat, supervise

CHAIN = 'agents = ["Foreman", "Mason", "Weaver"]\nchain = ["mason", "weaver"]\nrestarts = 3\n'


def make_group(tmp_path: Path, text: str = CHAIN, agents: Sequence[str] = ("Foreman", "Mason", "Weaver")) -> Group:
    folder = tmp_path / "builders"
    folder.mkdir()
    for name in agents:
        (folder / name).mkdir()
        (folder / name / "SOUL.md").write_text(f"# Name\n{name}\n")
        (folder / name / "denizen.toml").write_text(f'[moo]\nuser = "{name.lower()}"\n')
    (folder / "group.toml").write_text(text)
    group = open_group(folder, {"HOME": str(tmp_path), "SECRET": "of the group"})
    group.shared.mkdir(parents=True)
    return group


# What its folder says


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("agent = []", r"group.toml:1: agent isn't a setting. Did you mean agents?"),
        ('agents = ["A"]\nrestarts = -1', r"group.toml:2: restarts: expected an integer of at least 0, found -1"),
        ('agents = ["A"]\nchain_secret = "${NONE}"', r"group.toml:2: chain_secret needs the variable NONE"),
        ("", "agents lists none"),
        ('agents = ["A", "../B", "A"]', r"agents lists A, ../B"),
    ],
)
def test_a_mistake_in_group_toml_is_reported_with_its_place(tmp_path: Path, text: str, wrong: str) -> None:
    with pytest.raises(ConfigError, match=wrong):
        make_group(tmp_path, text, ())


def test_a_folder_without_group_toml_is_no_group(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no group.toml"):
        open_group(tmp_path)


def test_its_agents_have_its_chain_and_secret(tmp_path: Path) -> None:
    group = make_group(tmp_path, f'{CHAIN}chain_secret = "${{SECRET}}"\nforeman = "Foreman"\n')
    for member in group.members(environ={"HOME": str(tmp_path)}):
        assert member.settings.token_chain == ["mason", "weaver"]
        assert (member.settings.foreman, member.settings.chain_secret) == ("Foreman", "of the group")


def test_a_chain_of_players_whom_nobody_plays_is_refused(tmp_path: Path) -> None:
    group = make_group(tmp_path, CHAIN.replace('"weaver"]', '"weever"]'))
    with pytest.raises(ConfigError, match=r"chain names weever, but no agent plays that player"):
        group.members(environ={"HOME": str(tmp_path)})


# How its agents are kept playing

Part = Callable[[Seat], Awaitable[None]]


class Stage:
    """A group whose agents do what a test says, on a clock that runs by itself."""

    def __init__(self, tmp_path: Path, **parts: Part) -> None:
        self.group = make_group(tmp_path)
        self.clock, self.stop, self.watcher = FakeClock(), asyncio.Event(), Watcher()
        members = self.group.members(environ={"HOME": str(tmp_path)})
        self.seats = {member.name: Seat(self.group, member, self.watcher, self.clock) for member in members}
        self.began: list[tuple[str, float]] = []
        self._parts = parts

    async def run(self) -> None:
        await supervise([*self.seats.values()], self.play, self.clock, self.stop)

    async def play(self, seat: Seat) -> None:
        self.began.append((seat.folder.name, self.clock.monotonic()))
        await self._parts.get(seat.folder.name, self.plays_on)(seat)

    async def plays_on(self, seat: Seat) -> None:
        seat.status("waiting")
        await self.stop.wait()

    def state(self, name: str) -> AgentState:
        """As other processes see it."""
        return self.group.states()[name]


async def until(so: Callable[[], object]) -> None:
    while not so():  # noqa: ASYNC110 (what it waits for has no event)
        await asyncio.sleep(0)


async def falls(seat: Seat) -> None:
    raise RuntimeError("out of stones")


async def test_an_agent_that_falls_is_started_again_ever_later_and_then_given_up_while_the_others_play(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path, Mason=falls)
    running = asyncio.create_task(stage.run())
    await until(lambda: stage.state("Mason").life == "gave up")
    assert [seconds for name, seconds in stage.began if name == "Mason"] == [0, 5, 15, 35]
    assert (stage.state("Mason").problem, stage.state("Mason").restarts) == ("RuntimeError: out of stones.", 3)
    assert stage.state("Weaver").life == stage.state("Foreman").life == "playing"
    assert stage.watcher.told("server_error")[-1] == "RuntimeError: out of stones. It isn't started again."
    stage.stop.set()
    await running
    assert [stage.state(name).life for name in stage.seats] == ["stopped", "gave up", "stopped"]


async def test_what_only_the_user_can_mend_is_not_tried_again(tmp_path: Path) -> None:
    async def is_refused(seat: Seat) -> None:
        raise ConfigError("There is no password.")

    stage = Stage(tmp_path, Mason=is_refused, Weaver=is_refused, Foreman=is_refused)
    await stage.run()
    assert sorted(stage.began) == [("Foreman", 0), ("Mason", 0), ("Weaver", 0)]
    assert stage.state("Mason").problem == "There is no password."


async def test_falls_before_a_sound_while_do_not_count(tmp_path: Path) -> None:
    async def falls_late(seat: Seat) -> None:
        await stage.clock.sleep(700)
        raise DenizenError("The server is gone.")

    stage = Stage(tmp_path, Mason=falls_late)
    running = asyncio.create_task(stage.run())
    await until(lambda: stage.state("Mason").restarts == 5)
    assert {round(wait, 1) for wait in stage.clock.slept} == {700, 5}
    stage.stop.set()
    await running


async def test_the_foreman_begins_when_the_workers_have_signed_in_or_fallen(tmp_path: Path) -> None:
    async def signs_in_late(seat: Seat) -> None:
        await stage.clock.sleep(30)
        await stage.plays_on(seat)

    async def looks_around(seat: Seat) -> None:
        seen.append((stage.state("Mason").problem, stage.state("Weaver").doing))
        await stage.plays_on(seat)

    seen: list[tuple[str, str]] = []
    stage = Stage(tmp_path, Mason=falls, Weaver=signs_in_late, Foreman=looks_around)
    running = asyncio.create_task(stage.run())
    await until(lambda: seen)
    assert seen == [("RuntimeError: out of stones.", "waiting")]
    stage.stop.set()
    await running


async def test_a_tally_goes_on_after_a_fall(tmp_path: Path) -> None:
    async def thinks_and_falls(seat: Seat) -> None:
        seat.facts(Facts(tally=Tally({"dispatched": 2}, 100, 0.5, [1.0, 3.0], ended_at=7.0)))
        raise DenizenError("The model is gone.")

    stage = Stage(tmp_path, Mason=thinks_and_falls)
    running = asyncio.create_task(stage.run())
    await until(lambda: stage.state("Mason").life == "gave up")
    assert stage.state("Mason").tally == Tally({"dispatched": 8}, 400, 2.0, [1.0, 3.0] * 4, ended_at=7.0)
    stage.stop.set()
    await running


async def test_an_instruction_to_an_agent_that_is_not_there_is_said_to_be_unheard(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.seats["Mason"].instruct("Look around.")
    assert stage.watcher.told("system") == ["It isn't playing: the instruction is dropped."]


# Whose last cycle is too long ago


@pytest.mark.parametrize(
    ("state", "is_stale"),
    [
        (AgentState("playing", since=1000, doing="thinking"), False),
        (AgentState("playing", since=300, doing="thinking"), True),
        (AgentState("playing", since=300, doing="ready", tally=Tally(ended_at=900)), False),
        (AgentState("playing", since=300, doing="waiting"), False),
        (AgentState("playing", since=300, doing="thinking", tally=Tally(seconds=[10, 300, 20])), False),
        (AgentState("fallen", since=1000), True),
        (AgentState("starting", since=1000), False),
    ],
)
def test_an_agent_is_stale_that_should_have_finished_a_cycle(state: AgentState, is_stale: bool) -> None:
    assert state.is_stale(1000, 600) is is_stale
