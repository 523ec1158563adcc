"""Canaries: a secret of the configuration or the environment turns up nowhere."""

from pathlib import Path

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import call, requests_of, say

from denizen import Config, run_agent, tool
from denizen.config.settings import AuthProfile, ProviderSettings
from denizen.errors import ModelError
from denizen.events import RunEvent
from denizen.ports import ToolContext

KEY, TOKEN = "sk-canary-1234567890abcdef", 'tok-canary-"quoted"-0987654321'
ENVIRON = {"SOME_SERVICE_TOKEN": TOKEN}
CONFIG = Config(providers={"x": ProviderSettings(auth_profiles=[AuthProfile(id="p", api_key=KEY)])})


@tool
def leak(turn: ToolContext) -> str:
    """Print the environment."""
    turn.emit(f"found {KEY}")
    return f"key={KEY}\ntoken={TOKEN}"


def _all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def _clean(text: str) -> bool:
    return KEY not in text and TOKEN not in text and repr(TOKEN)[1:-1] not in text


async def test_secrets_reach_neither_prompt_nor_transcript_nor_events_nor_reply(
    agent_of: MakeAgent, tmp_path: Path
) -> None:
    events: list[RunEvent] = []
    script = (call(("leak", {}), text=f"with {TOKEN}"), say(f"the key is {KEY}"))
    agent = agent_of(*script, tools=[leak], config=CONFIG, environ=ENVIRON)
    agent.config.agent.workspace_dir.mkdir(parents=True)
    (agent.config.agent.workspace_dir / "AGENTS.md").write_text(f"Use {KEY}.")
    result = await run_agent(f"my token is {TOKEN}", agent=agent, on_event=events.append)
    (agent.config.agent.workspace_dir / "AGENTS.md").unlink()
    assert _clean(result.reply)
    assert all(_clean(str(event)) for event in events)
    assert all(_clean(request.system) and _clean(str(list(request.messages))) for request in requests_of(agent))
    kept = _all_bytes(tmp_path / "home").decode()
    assert _clean(kept)
    assert "[redacted]" in kept


async def test_a_secret_in_a_providers_error_is_not_shown(agent_of: MakeAgent, tmp_path: Path) -> None:
    events: list[RunEvent] = []
    agent = agent_of(ModelError(f"bad key {KEY}", kind="unknown"), config=CONFIG, environ=ENVIRON)
    with pytest.raises(ModelError) as caught:
        await run_agent("hi", agent=agent, on_event=events.append)
    assert _clean(str(caught.value))
    assert all(_clean(str(event)) for event in events)
    assert _clean(_all_bytes(tmp_path / "home").decode())
