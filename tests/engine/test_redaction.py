"""Canaries: a secret of the configuration or the environment turns up nowhere."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import call, requests_of, results, say

from denizen import Agent, Config, run_agent, tool
from denizen.config.settings import AuthProfileSettings, PolicySettings, ProviderSettings, Rule
from denizen.errors import ModelError
from denizen.events import LlmStream, RunEvent, StreamEvent, ToolCallDelta
from denizen.ports import ModelRequest, ToolContext
from denizen.testing import ScriptedModel

KEY, TOKEN = "sk-canary-1234567890abcdef", 'tok-canary-"quoted"-0987654321'
ENVIRON = {"SOME_SERVICE_TOKEN": TOKEN}
CONFIG = Config(providers={"x": ProviderSettings(auth_profiles=[AuthProfileSettings(id="p", api_key=KEY)])})


@tool
def leak(turn: ToolContext) -> str:
    """Print the environment."""
    turn.emit(f"found {KEY}")
    return f"key={KEY}\ntoken={TOKEN}"


def _all_text(folder: Path) -> str:
    files = [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]
    return b"".join(files).decode(errors="replace")


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
    kept = _all_text(tmp_path / "home")
    assert _clean(kept)
    assert "[redacted:SOME_SERVICE_TOKEN]" in kept


async def test_a_secret_in_a_providers_error_is_not_shown(agent_of: MakeAgent, tmp_path: Path) -> None:
    events: list[RunEvent] = []
    agent = agent_of(ModelError(f"bad key {KEY}", kind="unknown"), config=CONFIG, environ=ENVIRON)
    with pytest.raises(ModelError) as caught:
        await run_agent("hi", agent=agent, on_event=events.append)
    assert _clean(str(caught.value))
    assert all(_clean(str(event)) for event in events)
    assert _clean(_all_text(tmp_path / "home"))


async def test_what_follows_the_question_mark_of_a_base_url_is_a_secret(agent_of: MakeAgent, tmp_path: Path) -> None:
    events: list[RunEvent] = []
    url = f"https://ann:{quote(TOKEN)}@host.example/v1?api-version=2026-01-31&code={KEY}"
    config = Config(providers={"x": ProviderSettings(base_url=url)})
    agent = agent_of(ModelError(f"bad key in {url}", kind="unknown"), config=config)
    with pytest.raises(ModelError) as caught:
        await run_agent(f"from 2026-01-31: {KEY}", agent=agent, on_event=events.append)
    assert _clean(str(caught.value))
    assert all(_clean(str(event)) for event in events)
    kept = _all_text(tmp_path / "home")
    assert _clean(kept)
    assert "from 2026-01-31: [redacted:x.base_url?2]" in kept


async def test_a_secret_in_the_name_of_a_call_that_streams_is_not_shown(agent_of: MakeAgent) -> None:
    class Names(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
            if not self.requests:
                yield ToolCallDelta("c1", KEY, '{"a": ')
            async for event in super().stream(request):
                yield event

    events: list[RunEvent] = []
    agent = agent_of(model=Names([call((KEY, {"a": 1})), say("Done.")]), tools=[leak], config=CONFIG)
    await run_agent("go", agent=agent, on_event=events.append)
    assert any(isinstance(event, LlmStream) and isinstance(event.event, ToolCallDelta) for event in events)
    assert all(_clean(str(event)) for event in events)


# Marks


STRIPE = "sk_live_canary0123456789"
MARKED = "[redacted:STRIPE_API_KEY]"
SHOP = {"STRIPE_API_KEY": STRIPE}


@pytest.fixture
def dotenv(agent_of: MakeAgent, tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    path = tmp_path / "workspace" / ".env"
    path.write_text(f"STRIPE_API_KEY={STRIPE}\n")
    return path


async def _run(agent: Agent, text: str = "go") -> list[str]:
    return [result.text for result in results(await run_agent(text, agent=agent))]


PATCH = f"--- a/.env\n+++ b/.env\n@@ -1 +1,2 @@\n STRIPE_API_KEY={MARKED}\n+DEBUG=1\n"


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("write", {"path": ".env", "content": f"STRIPE_API_KEY={MARKED}\nDEBUG=1\n"}),
        ("edit", {"path": ".env", "old": f"={MARKED}\n", "new": f"={MARKED}\nDEBUG=1\n"}),
        ("apply_patch", {"patch": PATCH}),
        pytest.param(
            "bash",
            {"command": f"cat > .env <<'EOF'\nSTRIPE_API_KEY={MARKED}\nDEBUG=1\nEOF"},
            marks=pytest.mark.needs("bwrap"),
        ),
    ],
)
async def test_a_file_that_is_read_extended_and_written_back_keeps_its_secret(
    agent_of: MakeAgent, dotenv: Path, name: str, args: dict[str, str]
) -> None:
    agent = agent_of(call(("read", {"path": ".env"})), call((name, args)), say("Done."), environ=SHOP)
    shown, *_ = await _run(agent)
    assert MARKED in shown
    assert dotenv.read_text() == f"STRIPE_API_KEY={STRIPE}\nDEBUG=1\n"
    assert all(STRIPE not in str(list(request.messages)) for request in requests_of(agent))
    assert STRIPE not in _all_text(agent.home / "sessions")


async def test_a_secret_is_put_back_by_another_process_that_goes_on_with_the_session(
    agent_of: MakeAgent, dotenv: Path
) -> None:
    await _run(agent_of(call(("read", {"path": ".env"})), say("Read."), environ=SHOP))
    written = call(("write", {"path": ".env", "content": f"A=1\nSTRIPE_API_KEY={MARKED}\n"}))
    await _run(agent_of(written, say("Done."), environ=SHOP), "add A")
    assert dotenv.read_text() == f"A=1\nSTRIPE_API_KEY={STRIPE}\n"


async def test_a_key_in_json_is_put_back_as_json_writes_it(agent_of: MakeAgent, dotenv: Path) -> None:
    (dotenv.parent / "a.json").write_text(json.dumps({"token": TOKEN}))
    reading = agent_of(call(("read", {"path": "a.json"})), say("Read."), environ=ENVIRON)
    (shown,) = await _run(reading)
    content = shown.partition("\n")[0].partition("{")[2]
    agent = agent_of(
        call(("write", {"path": "a.json", "content": "{" + content.replace("}", ', "a": 1}')})),
        say("Done."),
        environ=ENVIRON,
    )
    await _run(agent)
    assert json.loads((dotenv.parent / "a.json").read_text()) == {"token": TOKEN, "a": 1}


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("write", {"path": "public.html", "content": f"<b>{MARKED}</b>"}),
        ("edit", {"path": "page.html", "old": "here", "new": MARKED}),
        ("apply_patch", {"patch": f"--- a/page.html\n+++ b/page.html\n@@ -1 +1 @@\n-here\n+{MARKED}\n"}),
        ("apply_patch", {"patch": PATCH + f"--- /dev/null\n+++ b/b.html\n@@ -0,0 +1 @@\n+{MARKED}\n"}),
        ("bash", {"command": f"echo {MARKED} > public.html"}),
        ("web_fetch", {"url": f"https://example.org/?{MARKED}"}),
        ("write", {"path": ".env", "content": "K=[redacted:NO_SUCH_KEY]"}),
    ],
)
async def test_a_call_that_would_take_a_secret_elsewhere_is_refused(
    agent_of: MakeAgent, dotenv: Path, name: str, args: dict[str, str]
) -> None:
    (dotenv.parent / "page.html").write_text("here\n")
    before = _all_text(dotenv.parent)
    agent = agent_of(call((name, args)), say("I can't."), environ=SHOP, config=Config(policy=ALLOWS_WEB))
    (refusal,) = await _run(agent)
    assert refusal.startswith("not run: [redacted:")
    assert "stands for a secret" in refusal
    assert _all_text(dotenv.parent) == before


ALLOWS_WEB = PolicySettings(
    rules=[
        Rule(tool="*", match="*", decide="allow"),
        Rule(tool="web_fetch", match="https://example.org/*", decide="allow"),
    ]
)


@pytest.mark.parametrize(
    "rule",
    [
        Rule(tool="write", match="deploy/*", decide="allow"),
        Rule(tool="write", match="{*redacted:STRIPE_API_KEY*deploy/prod.env*}", decide="allow"),
    ],
)
async def test_a_rule_lets_a_secret_go_into_another_file(agent_of: MakeAgent, dotenv: Path, rule: Rule) -> None:
    written = call(("write", {"path": "deploy/prod.env", "content": f"KEY={MARKED}\n"}))
    config = Config(policy=PolicySettings(rules=[rule]))
    await _run(agent_of(written, say("Done."), environ=SHOP, config=config))
    assert (dotenv.parent / "deploy" / "prod.env").read_text() == f"KEY={STRIPE}\n"


async def test_a_mark_that_a_file_holds_as_it_is_stays_one(agent_of: MakeAgent, dotenv: Path) -> None:
    page = dotenv.parent / "page.md"
    page.write_text(f"It shows `{MARKED}`.\n")
    edited = call(("edit", {"path": "page.md", "old": f"shows `{MARKED}`", "new": f"always shows `{MARKED}`"}))
    await _run(agent_of(edited, say("Done."), environ=SHOP))
    assert page.read_text() == f"It always shows `{MARKED}`.\n"


async def test_a_secret_that_a_shell_would_read_goes_into_no_command(agent_of: MakeAgent, dotenv: Path) -> None:
    dotenv.write_text("K=pa$(id)word-0123\n")
    agent = agent_of(
        call(("bash", {"command": "echo '[redacted:DB_PASSWORD]' >> .env"})),
        say("I'll edit it."),
        environ={"DB_PASSWORD": "pa$(id)word-0123"},
    )
    (refusal,) = await _run(agent)
    assert "with write or edit" in refusal


async def test_what_is_remembered_keeps_the_mark(agent_of: MakeAgent) -> None:
    agent = agent_of(call(("remember", {"text": f"The shop pays with {MARKED}"})), say("Done."), environ=SHOP)
    await run_agent("go", agent=agent)
    assert [fact.text for fact in await agent.memory.recall("shop")] == [f"The shop pays with {MARKED}"]


async def test_source_keeps_what_only_a_part_of_a_name_makes_look_secret(agent_of: MakeAgent, dotenv: Path) -> None:
    url = "http://localhost:8080"
    (dotenv.parent / "a.py").write_text(f'URL = "{url}"\n')
    agent = agent_of(call(("read", {"path": "a.py"})), say("Done."), environ={"KEYCLOAK_URL": url})
    assert url in (await _run(agent))[0]
