"""The model's `rollback` takes back what the agent did, and nothing of what the user did meanwhile."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import results

from denizen import Agent, run_agent, tool
from denizen.checkpoints import shadow_of
from denizen.messages import AssistantMessage, ToolCall, Usage
from denizen.ports import Tool, Traits
from denizen.testing import FakeClock
from denizen.worlds.code.tools.checkpoint import checkpoint_tools

Step = tuple[str, dict[str, Any]]

KEEP: Step = ("checkpoint", {"label": "green"})
BACK: Step = ("rollback", {"label": "green"})


def put(path: str, text: str) -> Step:
    """The agent writes a file."""
    return "put", {"path": path, "text": text}


def meanwhile(path: str, text: str) -> Step:
    """The user writes one, while the agent only reads."""
    return "meanwhile", {"path": path, "text": text}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "a").write_text("1")
    return folder


@pytest.fixture
def agent_that(agent_of: MakeAgent, files: Path, tmp_path: Path) -> Any:
    def write(path: str, text: str) -> str:
        """Write a file."""
        (files / path).write_text(text)
        return "written"

    kept = checkpoint_tools(shadow_of(files, tmp_path / "home", clock=FakeClock(), environ=os.environ))
    tools: list[Tool] = [
        tool(traits=Traits.WRITES, name="put")(write),
        tool(traits=Traits.READS, name="meanwhile")(write),
    ]

    def make(*steps: Step | list[Step]) -> Agent:
        return agent_of(*map(_reply, range(len(steps)), steps), "Done.", profile="coder", tools=[*kept, *tools])

    return make


def _reply(number: int, step: Step | list[Step]) -> AssistantMessage:
    steps = step if isinstance(step, list) else [step]
    calls = [ToolCall(f"c{number}-{at}", name, args) for at, (name, args) in enumerate(steps)]
    return AssistantMessage([*calls], "scripted", Usage(cost_usd=0.0), "tool_calls")


async def test_what_the_agent_did_is_taken_back(agent_that: Any, files: Path) -> None:
    await run_agent("go", agent=agent_that(KEEP, put("a", "2"), put("new", "2"), BACK))
    assert (files / "a").read_text() == "1"
    assert not (files / "new").exists()


async def test_what_it_did_in_the_same_reply_is_too(agent_that: Any, files: Path) -> None:
    await run_agent("go", agent=agent_that([KEEP, put("a", "2"), BACK]))
    assert (files / "a").read_text() == "1"


async def test_what_the_user_made_or_edited_meanwhile_stays(agent_that: Any, files: Path) -> None:
    (files / "b").write_text("1")
    steps = (KEEP, put("a", "2"), meanwhile("mine", "!"), meanwhile("b", "mine"), BACK)
    await run_agent("go", agent=agent_that(*steps))
    assert [(files / name).read_text() for name in ("a", "b", "mine")] == ["1", "mine", "!"]


async def test_where_both_changed_a_file_nothing_is_touched_and_the_model_is_told(agent_that: Any, files: Path) -> None:
    agent = agent_that(KEEP, put("a", "2"), put("new", "2"), meanwhile("a", "mine"), BACK)
    result = await run_agent("go", agent=agent)
    assert [(files / name).read_text() for name in ("a", "new")] == ["mine", "2"]
    refused = results(result)[-1]
    assert refused.is_error
    assert "Nothing was touched" in refused.text


async def test_a_label_of_another_session_is_refused(agent_that: Any, files: Path) -> None:
    await run_agent("go", agent=agent_that(KEEP), session_key="one")
    result = await run_agent("go", agent=agent_that(put("a", "2"), BACK), session_key="two")
    assert "this session has no checkpoint 'green'" in results(result)[-1].text
    assert (files / "a").read_text() == "2"


async def test_the_newest_of_a_label_counts(agent_that: Any, files: Path) -> None:
    await run_agent("go", agent=agent_that(KEEP, put("a", "2"), KEEP, put("a", "3"), BACK))
    assert (files / "a").read_text() == "2"
