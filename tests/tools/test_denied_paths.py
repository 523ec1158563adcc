"""What a rule denies as a path, no tool returns, whether a call names it or the tool comes upon it."""

import os
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from denizen import Agent, Config, run_agent
from denizen.config.settings import PolicySettings, Rule
from denizen.messages import AssistantMessage, ToolCall, ToolResult, Usage
from denizen.testing import ScriptedModel

SECRET = "canary-4711"
DENY = Rule(tool="*", match="secrets/*", decide="deny")
Ask = Callable[..., Awaitable[str]]


def git(folder: Path, *args: str) -> str:
    command = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *args]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "secrets").mkdir(parents=True)
    (folder / "docs").mkdir()
    git(folder, "init", "-q")
    (folder / "secrets/key.py").write_text(f'def hidden_canary():\n    return "{SECRET}"\n')
    (folder / "secrets/public.py").write_text("x = 1\n")
    (folder / "open.py").write_text("def shown():\n    return 1\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "First")
    (folder / "secrets/key.py").write_text(f'def hidden_canary():\n    return "{SECRET}!"\n')
    (folder / "open.py").write_text("def shown():\n    return 2\n")
    git(folder, "commit", "-qam", "Second")
    (folder / "secrets/key.py").write_text(f'def hidden_canary():\n    return "{SECRET}?"\n')
    (folder / "open.py").write_text("def shown():\n    return 3\n")
    os.link(folder / "secrets/key.py", folder / "docs/linked.py")
    (folder / "docs/symbolic.py").symlink_to("../secrets/key.py")
    return folder


@pytest.fixture
def ask(project: Path, tmp_path: Path) -> Ask:
    """`await ask("grep", pattern="x")`: what the tool gives an agent with the rule, or with `rules`."""

    async def run(name: str, rules: tuple[Rule, ...] = (DENY,), **args: object) -> str:
        reply = AssistantMessage([ToolCall("c", name, args)], "scripted", Usage(cost_usd=0.0), "tool_calls")
        done = AssistantMessage([], "scripted", Usage(cost_usd=0.0))
        config = Config(policy=PolicySettings(rules=[*rules]), home=tmp_path / "home", workspace=project)
        profile = "coder" if name in {"view", "analyze"} else "assistant"
        async with Agent(
            config, profile=profile, model=ScriptedModel([reply, done]), environ=dict(os.environ)
        ) as agent:
            result = await run_agent("go", agent=agent)
        return next(message.text for message in result.messages if isinstance(message, ToolResult))

    return run


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("grep", {"pattern": "canary"}),
        ("grep", {"pattern": "canary", "path": "docs"}),
        ("grep", {"pattern": "canary", "path": "docs/linked.py"}),
        ("find", {"pattern": "key*"}),
        ("find", {"pattern": "linked*"}),
        ("ls", {"path": "docs/../secrets"}),
        ("read", {"path": "docs/linked.py"}),
        ("read", {"path": "docs/symbolic.py"}),
        ("git", {"args": "log -p"}),
        ("git", {"args": "log -p --full-diff -- open.py"}),
        ("git", {"args": "log --follow -p docs/linked.py"}),
        ("git", {"args": "log -L 1,2:secrets/key.py"}),
        ("git", {"args": "log --stat"}),
        ("git", {"args": "diff"}),
        ("git", {"args": "diff HEAD~1 -- secrets open.py"}),
        ("git", {"args": "show"}),
        ("git", {"args": "show HEAD:secrets/key.py"}),
        ("git", {"args": "show HEAD:./docs/../secrets/key.py"}),
        ("git", {"args": "show HEAD:secrets"}),
        ("git", {"args": "blame secrets/key.py"}),
        ("git", {"args": "status"}),
    ],
)
async def test_what_a_rule_denies_is_not_returned(ask: Ask, name: str, args: dict[str, str]) -> None:
    answer = await ask(name, **args)
    assert SECRET not in answer
    assert "policy denies" in answer or "denied by the user's policy" in answer or "key.py" not in answer


async def test_content_named_by_its_hash_is_not_shown(ask: Ask, project: Path) -> None:
    assert SECRET not in await ask("git", args=f"show {git(project, 'rev-parse', 'HEAD:secrets/key.py')}")


async def test_the_rest_is_returned_and_what_is_left_out_is_counted(ask: Ask) -> None:
    assert "+    return 3" in await ask("git", args="diff")
    assert "+    return 3" in await ask("git", args="diff open.py")
    assert "return 2" in await ask("git", args="show HEAD:open.py")
    assert "return 2" in await ask("git", args="blame HEAD -- open.py")
    found = await ask("grep", pattern="return")
    assert "return 3" in found
    assert "left out, because the user's policy denies them: 2" in found


@pytest.mark.parametrize("args", [{"path": "."}, {"path": "hidden_canary"}, {"path": "docs/linked.py"}])
async def test_code_of_a_denied_file_is_not_shown(ask: Ask, args: dict[str, str]) -> None:
    assert SECRET not in await ask("view", **args)


async def test_a_later_rule_that_allows_a_path_lets_it_be_found(ask: Ask) -> None:
    public = Rule(tool="*", match="secrets/public.py", decide="allow")
    assert "x = 1" in await ask("read", (DENY, public), path="secrets/public.py")


async def test_rule_for_one_tool_does_not_apply_to_another(ask: Ask) -> None:
    rule = Rule(tool="read", match="secrets/*", decide="deny")
    assert SECRET in await ask("grep", (rule,), pattern="canary")
