"""Undo and redo: the last turn is taken back, files and conversation together."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import Host

from denizen import Agent, run_agent
from denizen.checkpoints import Conflict
from denizen.engine.undo import INTENDED, redo, undo
from denizen.entries import StateEntry, UserEntry
from denizen.errors import DenizenError
from denizen.messages import AssistantMessage, ToolCall
from denizen.ports import Session


def writes(path: str, content: str) -> list[Any]:
    """A turn of the model that writes a file and says so."""
    call = ToolCall(f"call-{content}", "write", {"path": path, "content": content})
    return [AssistantMessage([call], stop_reason="tool_calls"), f"wrote {content}"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a file that is not committed yet."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", folder], check=True)
    (folder / "kept.txt").write_text("the user's")
    return folder


def said(session: Session) -> list[str]:
    return [entry.message.text for entry in session.entries if isinstance(entry, UserEntry)]


async def talk(agent: Agent, *messages: str) -> Session:
    for message in messages:
        await run_agent(message, agent=agent, session_key="default")
    return await agent.open("default")


async def test_undo_takes_back_what_was_said_and_what_was_written(agent_of: MakeAgent, project: Path) -> None:
    agent = agent_of(*writes("a.txt", "one"), *writes("a.txt", "two"))
    session = await talk(agent, "first", "second")
    assert (project / "a.txt").read_text() == "two"
    assert await undo(agent, session) == "second"
    assert said(session) == ["first"]
    assert (project / "a.txt").read_text() == "one"
    assert await undo(agent, session) == "first"
    assert said(session) == []
    assert [path.name for path in project.iterdir() if path.name != ".git"] == ["kept.txt"]
    await session.close()


async def test_redo_takes_undos_back_one_by_one(agent_of: MakeAgent, project: Path) -> None:
    agent = agent_of(*writes("a.txt", "one"), *writes("a.txt", "two"))
    session = await talk(agent, "first", "second")
    await undo(agent, session)
    await undo(agent, session)
    assert await redo(agent, session) == "first"
    assert (project / "a.txt").read_text() == "one"
    assert await redo(agent, session) == "second"
    assert (project / "a.txt").read_text() == "two"
    assert said(session) == ["first", "second"]
    with pytest.raises(DenizenError, match="nothing to redo"):
        await redo(agent, session)
    await session.close()


async def test_a_turn_that_changed_no_file_is_undone_alone(agent_of: MakeAgent, project: Path) -> None:
    agent = agent_of("hello")
    session = await talk(agent, "hi")
    (project / "kept.txt").write_text("changed meanwhile")
    await undo(agent, session)
    assert said(session) == []
    assert (project / "kept.txt").read_text() == "changed meanwhile"
    await session.close()


async def test_what_the_user_changed_since_is_not_overwritten_unless_told_to(
    agent_of: MakeAgent, project: Path
) -> None:
    agent = agent_of(*writes("a.txt", "one"))
    session = await talk(agent, "first")
    (project / "a.txt").write_text("mine now")
    with pytest.raises(Conflict, match=r"a\.txt"):
        await undo(agent, session)
    assert said(session) == ["first"]
    assert (project / "a.txt").read_text() == "mine now"
    await undo(agent, session, force=True)
    assert not (project / "a.txt").exists()
    await redo(agent, session)
    assert (project / "a.txt").read_text() == "mine now"
    await session.close()


async def test_nothing_is_undone_where_nothing_was_said(agent_of: MakeAgent, project: Path) -> None:
    agent = agent_of()
    session = await agent.open("default")
    with pytest.raises(DenizenError, match="nothing to undo"):
        await undo(agent, session)
    await session.close()


async def test_an_undo_that_a_crash_cut_off_is_finished_when_the_session_is_opened(
    agent_of: MakeAgent, project: Path
) -> None:
    agent = agent_of(*writes("a.txt", "one"))
    session = await talk(agent, "first")
    assert agent.checkpoints
    oldest = (await agent.checkpoints.list())[-1].id
    way = {"to": session.entries[0].id, "snapshot": oldest, "expect": ""}
    await session.append(StateEntry(name=INTENDED, value=way))
    await session.close()
    session = await agent.open("default")
    assert said(session) == []
    assert not (project / "a.txt").exists()
    await session.close()


async def test_a_message_after_an_undo_goes_on_from_there(agent_of: MakeAgent, project: Path, host: Host) -> None:
    agent = agent_of(*writes("a.txt", "one"), "again")
    session = await talk(agent, "first")
    await undo(agent, session)
    await session.close()
    result = await run_agent("second", agent=agent, session_key="default")
    assert result.reply == "again"
    last = agent.model.requests[-1].messages  # pyrefly: ignore[missing-attribute]
    assert [message.content[0].text for message in last] == ["second"]
