"""A driver that somebody else wrote has a say; what it breaks ends the turn with words and a whole transcript."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.drivers.test_planning import look, told
from tests.engine.scene import Host, call, run_agent, say

from denizen import Agent, Config
from denizen.config.settings import AgentSettings
from denizen.entries import EndEntry
from denizen.errors import DenizenError

HEAD = "from denizen.ports import Backtrack, Escalate, GiveUp, Proceed\n\n\n"


def driver(tmp_path: Path, decide: str, observe: str = "pass") -> Config:
    """A configuration that names a driver of these two bodies."""
    methods = {"decide(self, view)": decide, "observe(self, iteration)": observe}
    body = "".join(f"\n    def {head}:\n        {line}\n" for head, line in methods.items())
    (tmp_path / "mine.py").write_text(f"{HEAD}class Mine:\n    seen = 0\n{body}")
    return Config(agent=AgentSettings(driver=str(tmp_path / "mine.py")))


def agent_with(agent_of: MakeAgent, config: Config, *script: Any) -> Agent:
    return agent_of(*script, tools=[look], config=config)


LOOKS: Sequence[Any] = [call(("look", {"at": number})) for number in range(3)]


async def test_it_sees_each_iteration_before_it_decides_on_the_next(tmp_path: Path, agent_of: MakeAgent) -> None:
    config = driver(
        tmp_path,
        "return Proceed(f'{self.seen} seen')",
        "self.seen += 1; assert iteration.calls[0].name == 'look' and iteration.results[0].text",
    )
    agent = agent_with(agent_of, config, *LOOKS, call(("look", {"at": 9})))
    with pytest.raises(DenizenError, match="no replies left"):
        await run_agent("go", agent=agent)
    assert told(agent) == ["0 seen", "1 seen", "2 seen", "3 seen", "4 seen"]


async def test_it_may_end_the_turn(tmp_path: Path, agent_of: MakeAgent) -> None:
    config = driver(tmp_path, "return GiveUp('enough') if self.seen == 2 else Proceed()", "self.seen += 1")
    result = await run_agent("go", agent=agent_with(agent_of, config, *LOOKS))
    assert (result.stop_reason, result.iterations, result.error) == ("loop", 2, "enough")


async def test_it_may_ask_the_person(tmp_path: Path, agent_of: MakeAgent, host: Host) -> None:
    config = driver(tmp_path, "return Proceed() if self.seen else Escalate('Which?', 'Guess.')", "self.seen += 1")
    agent = agent_with(agent_of, config, *LOOKS, say("Done."))
    result = await run_agent("go", agent=agent, io=host)
    assert [asked.question for asked in host.asked] == ["Which?"]
    assert (result.stop_reason, told(agent)) == ("answered", ["Guess."])


async def test_a_return_without_checkpoints_is_reported_alone(tmp_path: Path, agent_of: MakeAgent) -> None:
    config = driver(tmp_path, "return Backtrack('Not so.') if self.seen == 1 else Proceed()", "self.seen += 1")
    agent = agent_with(agent_of, config, *LOOKS, say("Done."))
    await run_agent("go", agent=agent)
    assert told(agent) == ["Not so.\nNo file needed to be taken back."]


@pytest.mark.parametrize(
    ("decide", "observe", "why"),
    [
        (
            "return view.nothing",
            "pass",
            r"decide\(\) of denizen_driver_mine: AttributeError: 'View' object has no attribute 'nothing'",
        ),
        (
            "return None",
            "pass",
            r"decide\(\) of denizen_driver_mine: TypeError: None isn't a Proceed, Backtrack, Escalate or GiveUp",
        ),
        ("return Proceed()", "raise ValueError('no')", r"observe\(\) of denizen_driver_mine: ValueError: no"),
    ],
)
async def test_what_it_breaks_is_reported_by_its_name(
    tmp_path: Path, agent_of: MakeAgent, entries_of: Any, *, decide: str, observe: str, why: str
) -> None:
    agent = agent_with(agent_of, driver(tmp_path, decide, observe), *LOOKS, say("Done."))
    with pytest.raises(DenizenError, match=rf"The driver Mine failed in {why}"):
        await run_agent("go", agent=agent)
    last = (await entries_of(agent))[-1]
    assert isinstance(last, EndEntry)
    assert last.stop_reason == "error"


async def test_a_loop_goes_before_what_it_wants(tmp_path: Path, agent_of: MakeAgent) -> None:
    config = driver(tmp_path, "return Proceed(f'{self.seen} seen')", "self.seen += 1")
    agent = agent_with(agent_of, config, *[LOOKS[0]] * 3, say("Done."))
    await run_agent("go", agent=agent)
    assert [text[:20] for text in told(agent)] == ["0 seen", "1 seen", "2 seen", "You seem to be stuck"]
