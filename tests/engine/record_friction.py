"""Makes the transcripts in tests/data/friction: real turns of an agent whose model plays a script.

python -m tests.engine.record_friction [FOLDER]
"""

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.engine.scene import Host, call, say

from denizen import Agent, Config, run_agent
from denizen.config.settings import PolicySettings, Rule
from denizen.context import Transcript
from denizen.messages import AssistantMessage
from denizen.ports import Answer
from denizen.testing import FakeClock, ScriptedModel
from denizen.worlds.assemble import FORMATS
from denizen.worlds.world import Profile, find_world

FOLDER = Path(__file__).parent.parent / "data" / "friction"

SHOP = '''\
PRICES = {"lamp": 40, "desk": 250}


def total(articles):
    """What some articles cost together."""
    return sum(PRICES[article] for article in articles)
'''

_ASKS_ABOUT_WRITES = PolicySettings(rules=[Rule(tool="write", decide="ask")])

Turn = Sequence[AssistantMessage]


def does(name: str, **args: Any) -> AssistantMessage:
    """One call."""
    return call((name, args))


def searches(pattern: str) -> Turn:
    """Looks for something, sees too little, and looks again with more around it."""
    return [does("grep", pattern=pattern), does("grep", pattern=pattern, context=3), say("There.")]


SESSIONS: dict[str, Sequence[Turn]] = {
    "searching": [
        searches("def total"),
        searches("PRICES"),
        [*searches("sum")[:-1], does("grep", pattern="lamp"), does("ls"), say("There.")],
        [does("read", path="shop.py"), does("ls"), does("read", path="shop.py"), say("It adds.")],
        [does("read", path="shop.py"), say("It still adds.")],
    ],
    "stumbling": [
        [does("read", file="shop.py"), does("read", path="shop.py"), say("I see.")],
        [does("raed", path="shop.py"), does("read", path="shop.pi"), does("read", path="shop.py"), say("I see.")],
        [does("read", path="long.txt"), does("read", path="long.txt", start=2001), say("It is long.")],
        [does("write", path="shop.py", content=""), say("Not allowed.")],
        [
            does("read", path="shop.py"),
            does("edit", path="shop.py", old="250", new="300"),
            does("read", path="shop.py"),
            say("Dearer."),
        ],
    ],
    "habits": [
        [*(does("grep", pattern=f"word {number}", ignore_case=True) for number in range(12)), say("Nowhere.")],
    ],
}

COMMANDS: Sequence[Turn] = [
    [
        say('$(text-search "def total")'),
        say('$(text-search "def total" --context 3)\n$(ls)'),
        say("$(ls)\n$(text-search lamp --contxt 3)"),
        say("There."),
    ]
]
"""The same in text: calls are `$(…)`."""


async def record(folder: Path, *, workspace: Path) -> None:
    """Write a transcript for each of the sessions; the agent works in `workspace`."""
    (workspace / "shop.py").write_text(SHOP)
    (workspace / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 2502)))
    for name, turns in SESSIONS.items():
        (folder / f"{name}.jsonl").write_text(await _played(name, turns, workspace, find_world("assistant").profile))
    in_text = Profile("assistant", FORMATS["shell"], Transcript)
    (folder / "commands.jsonl").write_text(await _played("commands", COMMANDS, workspace, in_text))


async def _played(name: str, turns: Sequence[Turn], workspace: Path, profile: Profile) -> str:
    """The transcript of these turns, wherever they were played."""
    host = Host()
    host.answer = lambda ask: Answer(ask.call_id, allow=False)
    model = ScriptedModel([reply for turn in turns for reply in turn])
    with tempfile.TemporaryDirectory() as home:
        config = Config(home=Path(home), workspace=workspace, policy=_ASKS_ABOUT_WRITES)
        async with Agent(config, profile=profile, model=model, clock=FakeClock(), environ={}) as agent:
            for number in range(len(turns)):
                await run_agent(f"Task {number + 1}", session_key=name, agent=agent, io=host)
        [transcript] = Path(home).glob("sessions/*/*.jsonl")
        return transcript.read_text().replace(str(workspace), "shop")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(record(Path(sys.argv[1]) if sys.argv[1:] else FOLDER, workspace=Path(place)))
