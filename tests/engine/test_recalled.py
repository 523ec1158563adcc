"""What a task begins with of earlier sessions."""

from pathlib import Path
from typing import Any

from tests.engine.conftest import MakeAgent
from tests.engine.scene import DEFAULT, Host, call, run_agent, say

from denizen.engine.prompting import inject_memories, recalled
from denizen.engine.turn import Turn, TurnOptions
from denizen.events import Notice
from denizen.ports import Traits


async def turn_of(agent_of: MakeAgent, host: Host, **options: Any) -> Turn:
    agent = agent_of(**options)
    session = await agent.open("later")
    return Turn(agent.record, session, host, TurnOptions(stream=False))


async def test_a_fact_comes_with_its_day_and_its_session(agent_of: MakeAgent, host: Host) -> None:
    kept = {"text": "The auth module keeps JWTs in cookies", "context": "architecture", "weight": 0.8}
    async with agent_of(call(("remember", kept)), say("Done.")) as agent:
        await run_agent("Look at auth", agent=agent)
    turn = await turn_of(agent_of, host)
    [line] = await recalled(turn, "Refactor the auth module")
    assert line == "The auth module keeps JWTs in cookies (architecture, 2026-01-01, from default, p1)"
    assert DEFAULT.endswith(":default")
    await turn.session.close()


async def test_at_most_five_and_none_that_has_nothing_to_do_with_it(agent_of: MakeAgent, host: Host) -> None:
    turn = await turn_of(agent_of, host)
    for number in range(9):
        await turn.agent.memory.remember(f"The parser has fault {number}")
    assert len(await recalled(turn, "Fix the parser")) == 5
    assert await recalled(turn, "Write the docs") == await recalled(turn, " ") == []
    await turn.session.close()


async def test_a_damaged_memory_is_reported_and_stops_nothing(agent_of: MakeAgent, host: Host, tmp_path: Path) -> None:
    turn = await turn_of(agent_of, host)
    (tmp_path / "home" / "memory.db").write_bytes(b"garbage" * 1000)
    assert await recalled(turn, "Fix the parser") == []
    [notice] = host.of(Notice)
    assert notice.level == "warning"
    assert "memory.db is damaged" in notice.text
    await turn.session.close()


async def test_a_coder_is_reminded_and_has_then_seen_private_data(agent_of: MakeAgent, host: Host) -> None:
    turn = await turn_of(agent_of, host, profile="coder")
    await turn.agent.memory.remember("The auth module keeps JWTs in cookies")
    await inject_memories(turn, "Write the docs")
    assert Traits.PRIVATE not in turn.state.in_sight
    await inject_memories(turn, "Refactor the auth module")
    assert Traits.PRIVATE in turn.state.in_sight
    assert "JWTs in cookies" in turn.context.assemble(turn.view())[0].text
    await turn.session.close()


async def test_no_secret_of_the_environment_is_remembered(agent_of: MakeAgent, tmp_path: Path) -> None:
    kept = {"text": "The key is canary-4711-canary", "context": "canary-4711-canary"}
    agent = agent_of(call(("remember", kept)), say("Done."), environ={"SHOP_API_KEY": "canary-4711-canary"})
    await run_agent("Remember the key", agent=agent)
    assert [fact.text for fact in await agent.memory.recall("key")] == ["The key is [redacted:SHOP_API_KEY]"]
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {"memory.db", "MEMORY.md"} <= {file.name for file in files}
    assert not [file for file in files if b"canary-4711" in file.read_bytes()]
