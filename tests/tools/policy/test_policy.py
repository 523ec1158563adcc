"""What may run."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from denizen.config.rules import deciding_rule
from denizen.config.settings import PolicySettings, Rule, SandboxSettings
from denizen.messages import ToolCall
from denizen.ports import Decision, Tool, Traits
from denizen.tools import FunctionTool, tool
from denizen.tools.policy.policy import RulePolicy
from denizen.tools.sandbox import Bubblewrap, Unconfined

READS = Traits.READS | Traits.REPEATABLE
BOTH = Traits.UNTRUSTED | Traits.PRIVATE


def made(name: str, traits: Traits = Traits.NONE) -> FunctionTool:
    @tool(name=name, traits=traits)
    def function() -> str:
        """Do something."""
        return ""

    return function


CONFINED = Bubblewrap(SandboxSettings(), {}, Path("/nowhere"))
UNCONFINED = Unconfined(SandboxSettings(), {})
TOOLS = {
    made.name: made
    for made in (
        made("bash", Traits.EXECUTES),
        made("read", READS),
        made("write", Traits.WRITES),
        made("apply_patch", Traits.WRITES),
        made("edit_symbol", Traits.WRITES),
        made("remember", Traits.WRITES),
        made("recall", READS | Traits.PRIVATE),
        made("web_fetch", READS | Traits.NETWORK | Traits.UNTRUSTED),
        made("message", Traits.SENDS),
        made("task", Traits.REPEATABLE),
        made("dim"),
    )
}


class Scene:
    """A policy, what was approved for the session, and whether the run is read-only."""

    def __init__(self, policy: RulePolicy, approved: Sequence[Rule], *, read_only: bool) -> None:
        self.policy = policy
        self.approved = approved
        self.read_only = read_only


def policy(
    *rules: Rule, confined: bool = True, approved: Sequence[Rule] = (), read_only: bool = False, **options: Any
) -> Scene:
    settings = PolicySettings(rules=list(rules))
    sandbox = CONFINED if confined else UNCONFINED
    return Scene(RulePolicy(settings, sandbox=sandbox, **options), approved, read_only=read_only)


def decide(scene: Scene, name: str, seen: Traits = Traits.NONE, **args: Any) -> Decision:
    call = ToolCall("1", name, args)
    return scene.policy.decide(call, TOOLS[name], seen, approved=scene.approved, read_only=scene.read_only)


def verdict(scene: Scene, name: str, seen: Traits = Traits.NONE, **args: Any) -> str:
    return decide(scene, name, seen, **args).verdict


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("write", {"path": "SOUL.md"}),
        ("write", {"path": "notes/../MEMORY.md"}),
        ("write", {"path": "memory/202601/20260101.md"}),
        ("write", {"path": "skills/deploy/run.sh"}),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Add File: HEARTBEAT.md\n+x\n*** End Patch"}),
    ],
)
def test_what_sessions_begin_with_is_not_written_unasked_in_sight_of_others_text(
    tmp_path: Path, name: str, args: dict[str, str]
) -> None:
    own = policy(Rule(tool="*", decide="allow"), workspace=tmp_path, own_folder=tmp_path)
    assert verdict(own, name, Traits.UNTRUSTED, **args) == "ask"
    assert verdict(own, name, Traits.PRIVATE, **args) == "allow"
    elsewhere = policy(Rule(tool="*", decide="allow"), workspace=tmp_path, own_folder=tmp_path / "own")
    assert verdict(elsewhere, name, Traits.UNTRUSTED, **args) == "allow"


def test_other_files_are_written_in_sight_of_others_text(tmp_path: Path) -> None:
    own = policy(workspace=tmp_path, own_folder=tmp_path)
    assert verdict(own, "write", Traits.UNTRUSTED, path="report.txt") == "allow"
    assert verdict(own, "write", Traits.UNTRUSTED, path="plans/a.md") == "allow"
    assert verdict(own, "remember", Traits.UNTRUSTED, text="x") == "allow"


def rule_for(call: ToolCall, tool: Tool) -> Rule:
    return policy().policy.rule_for(call, tool)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("read", "allow"),
        ("write", "allow"),
        ("recall", "allow"),
        ("remember", "allow"),
        ("bash", "allow"),
        ("dim", "allow"),
        ("web_fetch", "ask"),
        ("message", "ask"),
    ],
)
def test_the_default_policy(name: str, expected: str) -> None:
    assert verdict(policy(), name) == expected


def test_commands_outside_a_sandbox_are_asked_about() -> None:
    decision = decide(policy(confined=False), "bash", command="make  test\n")
    assert decision == Decision(
        "ask", "Allow bash(make test)? It runs with all your rights: this machine has no sandbox."
    )


def test_a_rule_of_the_user_decides_over_the_default() -> None:
    rules = [
        Rule(tool="bash", match="git status*", decide="allow"),
        Rule(tool="write", match="*.lock", decide="deny"),
        Rule(tool="read", match="*.env", decide="ask"),
    ]
    assert verdict(policy(*rules, confined=False), "bash", command="git status -s") == "allow"
    assert verdict(policy(*rules, confined=False), "bash", command="git status; rm -rf x") == "ask"
    assert verdict(policy(*rules), "write", path="uv.lock") == "deny"
    assert verdict(policy(*rules), "read", path=".env") == "ask"


@pytest.mark.parametrize(
    "patch",
    [
        "--- a/secrets/x\n+++ b/secrets/x\n@@\n-a\n+b\n",
        "--- i/secrets/x\n+++ w/secrets/x\n@@\n-a\n+b\n",
        '--- "a/secrets/\\170"\n+++ "b/secrets/\\170"\n@@\n-a\n+b\n',
        "diff --git a/secrets/x b/secrets/x\ndeleted file mode 100644\n",
        "diff --git a/x b/secrets/y\ncopy from x\ncopy to secrets/y\n",
        "*** Begin Patch\n*** Update File:secrets/x\n@@\n-a\n+b\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: x\n*** Move to:docs/../secrets/y\n*** End Patch\n",
        "*** Begin Patch\n*** Add File: docs/x\n+a\n*** Delete File: link/x\n*** End Patch\n",
    ],
)
def test_a_rule_is_about_every_file_of_a_patch_however_it_is_named(patch: str, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "link").symlink_to("secrets")
    rules = [Rule(tool="*", match="docs/*", decide="allow"), Rule(tool="*", match="secrets/*", decide="deny")]
    assert verdict(policy(*rules, workspace=tmp_path), "apply_patch", patch=patch) == "deny"


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("read", {"path": "secrets.py/KEY"}),
        ("edit_symbol", {"target": "secrets.py/KEY", "action": "delete"}),
        ("edit_symbol", {"target": "docs/a.py/f", "action": "move", "content": "secrets.py"}),
        ("edit_symbol", {"target": "docs/a.py/f", "action": "move", "content": "link.py/KEY"}),
    ],
)
def test_a_rule_is_about_the_file_of_a_symbol(name: str, args: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "secrets.py").write_text("KEY = 1\n")
    (tmp_path / "link.py").symlink_to("secrets.py")
    denied = policy(Rule(tool="*", match="secrets.py", decide="deny"), workspace=tmp_path)
    assert verdict(denied, name, **args) == "deny"
    other: dict[str, Any] = {**args, "path": "other.py", "target": "other.py/f", "content": ""}
    assert verdict(denied, name, **other) == "allow"


def test_a_target_that_can_be_no_path_is_left_to_the_tool(tmp_path: Path) -> None:
    for target in ("x" * 5000, "a/" * 3000, "a\0b", ""):
        args = {"target": target, "action": "replace"}
        assert verdict(policy(Rule(tool="*", match="x", decide="deny"), workspace=tmp_path), "edit_symbol", **args)


def test_what_a_patch_changes_is_no_name_of_a_file(tmp_path: Path) -> None:
    patch = "--- a/docs/x.sql\n+++ b/docs/x.sql\n@@ -1,2 +1,2 @@\n--- secrets/x\n+++ secrets/y\n a\n"
    rules = [Rule(tool="*", match="docs/*", decide="allow"), Rule(tool="*", match="secrets/*", decide="deny")]
    assert verdict(policy(*rules, workspace=tmp_path), "apply_patch", patch=patch) == "allow"


def test_a_refusal_names_the_rule() -> None:
    denied = decide(policy(Rule(tool="*", match="rm *", decide="deny")), "bash", command="rm x")
    assert denied.reason == "The user's policy denies it (deny * 'rm *'): do it another way, or say what you need."


def test_an_approval_of_the_session_counts_like_the_users_last_rule() -> None:
    denied = Rule(tool="bash", match="*", decide="ask")
    approved = Rule(tool="bash", match="make test", decide="allow")
    assert verdict(policy(denied, approved=[approved]), "bash", command="make test") == "allow"
    assert verdict(policy(denied, approved=[approved]), "bash", command="make install") == "ask"


ALLOW_ALL = Rule(tool="*", decide="allow")


@pytest.mark.parametrize("name", ["web_fetch", "message"])
def test_the_rule_of_two_asks_even_where_a_rule_allows(name: str) -> None:
    assert verdict(policy(ALLOW_ALL), name) == "allow"
    assert verdict(policy(ALLOW_ALL), name, Traits.UNTRUSTED) == "allow"
    assert verdict(policy(ALLOW_ALL), name, Traits.PRIVATE) == "allow"
    assert verdict(policy(approved=[ALLOW_ALL]), name, BOTH) == "ask"
    assert verdict(policy(Rule(tool="*", decide="deny")), name, BOTH) == "deny"


def test_the_rule_of_two_is_about_commands_that_can_reach_the_network() -> None:
    assert verdict(policy(), "bash", BOTH, command="ls") == "allow"
    assert verdict(policy(network=True), "bash", BOTH, command="ls") == "ask"
    assert verdict(policy(ALLOW_ALL, confined=False), "bash", BOTH, command="ls") == "ask"


def test_the_rule_of_two_leaves_reads_and_writes_alone() -> None:
    assert verdict(policy(), "read", BOTH) == "allow"
    assert verdict(policy(), "write", BOTH) == "allow"


@pytest.mark.parametrize("name", ["write", "bash", "remember", "message", "dim"])
def test_read_only_refuses_everything_but_reads(name: str) -> None:
    assert verdict(policy(ALLOW_ALL, read_only=True), name) == "deny"


def test_read_only_leaves_reads_to_the_policy() -> None:
    assert verdict(policy(read_only=True), "read") == "allow"
    assert verdict(policy(read_only=True), "recall") == "allow"
    assert verdict(policy(read_only=True), "web_fetch") == "ask"


def test_read_only_leaves_the_agent_its_plan() -> None:
    assert verdict(policy(read_only=True), "task") == "allow"


@pytest.mark.parametrize(
    ("name", "args", "others"),
    [
        ("bash", {"command": "ls *.py | wc -l > [n]"}, [{"command": "ls a.py | wc -l > n"}, {"command": "ls"}]),
        ("write", {"path": "a/b?.md"}, [{"path": "a/bc.md"}, {"path": "a"}]),
        ("web_fetch", {"url": "HTTPS://Docs.Example.org"}, [{"url": "https://example.org/"}]),
        ("dim", {"lamp": 1, "level": [2]}, [{"lamp": 1, "level": [3]}]),
    ],
)
def test_always_is_about_this_call_and_no_other(name: str, args: dict[str, Any], others: list[dict[str, Any]]) -> None:
    always = rule_for(ToolCall("1", name, args), TOOLS[name])
    assert deciding_rule([always], name, args) == always
    assert not any(deciding_rule([always], name, other) for other in others)
    assert deciding_rule([always], "another", args) is None


@pytest.mark.parametrize("place", ["configuration", "session"])
@pytest.mark.parametrize(
    ("name", "args", "other"),
    [
        ("web_fetch", {"url": "https://docs.example.org/a"}, {"url": "https://docs.example.org/?q=secret"}),
        ("message", {"text": "Good night."}, {"text": "Good morning."}),
    ],
)
def test_always_holds_in_sight_of_others_text_for_the_same_arguments(
    name: str, args: dict[str, Any], other: dict[str, Any], place: str
) -> None:
    allowed = Rule(tool=name, decide="allow")
    always = policy(allowed).policy.rule_for(ToolCall("1", name, args), TOOLS[name], BOTH)
    scene = policy(allowed, always) if place == "configuration" else policy(allowed, approved=[always])
    assert (verdict(scene, name, BOTH, **args), verdict(scene, name, BOTH, **other)) == ("allow", "ask")


def test_always_is_about_the_site_of_a_page() -> None:
    url = "https://docs.example.org/a?b"
    assert rule_for(ToolCall("1", "web_fetch", {"url": url}), TOOLS["web_fetch"]).match == "https://docs.example.org/*"


def test_always_for_an_address_that_is_none_is_about_that_text() -> None:
    assert rule_for(ToolCall("1", "web_fetch", {"url": "https://[x"}), TOOLS["web_fetch"]).match == "https://[[]x"


def test_a_reason_shows_a_long_argument_in_part() -> None:
    assert len(decide(policy(confined=False), "bash", command="x" * 10_000).reason) < 300


def test_a_command_outside_the_sandbox_is_asked_about_even_where_it_is_allowed_inside() -> None:
    allowed = policy(Rule(tool="bash", match="*", decide="allow"))
    assert verdict(allowed, "bash", command="git commit", unsandboxed=False) == "allow"
    assert verdict(allowed, "bash", command="git commit", unsandboxed=True) == "ask"
    assert verdict(allowed, "bash", command="git commit", unsandboxed="true") == "ask"


def test_an_approval_outside_the_sandbox_is_for_that_very_command() -> None:
    call = ToolCall("1", "bash", {"command": "git commit", "unsandboxed": True})
    approved = policy(approved=[rule_for(call, TOOLS["bash"])])
    assert verdict(approved, "bash", command="git commit", unsandboxed=True) == "allow"
    assert verdict(approved, "bash", command="git push", unsandboxed=True) == "ask"


def test_a_rule_that_denies_a_command_denies_it_outside_the_sandbox_too() -> None:
    assert (
        verdict(
            policy(Rule(tool="bash", match="git push*", decide="deny")), "bash", command="git push", unsandboxed=True
        )
        == "deny"
    )


@pytest.mark.parametrize(
    "path",
    [
        *(".envrc", "sub/.envrc", ".vscode/tasks.json", ".denizen/a.md", "skills/x/SKILL.md", "src/.husky/pre-push"),
        *("mise.toml", ".devcontainer/a/devcontainer.json", ".claude/settings.json", ".idea/startup.xml"),
    ],
)
def test_files_that_other_programs_run_by_themselves_are_asked_about(path: str, tmp_path: Path) -> None:
    (tmp_path / "skills/y").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path)
    here = policy(workspace=tmp_path)
    assert f"Other programs run or follow {path} by themselves" in decide(here, "write", path=path, content="").reason
    patch = f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n"
    assert verdict(here, "apply_patch", patch=patch) == "ask"
    assert verdict(here, "write", path=f"link/src/../{path}", content="") == "ask"
    assert (
        verdict(policy(Rule(tool="write", decide="allow"), workspace=tmp_path), "write", path=path, content="")
        == "allow"
    )


def test_files_of_a_skill_and_hooks_that_the_repository_names_are_asked_about(tmp_path: Path) -> None:
    for folder in (".git/objects", "skills/x", "skills/app"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "skills/x/SKILL.md").touch()
    (tmp_path / ".git/config").write_text("[core]\n\thooksPath = .husky\n")
    verdicts = {
        path: verdict(policy(workspace=tmp_path), "write", path=path, content="")
        for path in ("skills/x/run.sh", ".husky/pre-commit", "skills/app/models.py", "skills/README", "\0", "src/a.py")
    }
    assert [path for path, said in verdicts.items() if said == "ask"] == ["skills/x/run.sh", ".husky/pre-commit"]


def test_hooks_and_programs_are_asked_about_in_nested_repositories_and_by_the_users_own_settings(
    tmp_path: Path,
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.gitconfig").write_text('[core]\nhooksPath = "githooks" # for all\n')
    for name in ("w/lib", "w/other"):
        (tmp_path / name).mkdir(parents=True)
        subprocess.run(["git", "init", "-q"], cwd=tmp_path / name, check=True)
    (tmp_path / "w/lib/.git/config").write_text('[include]\npath = ../../shared\n[diff "x"]\ntextconv = ./show -x\n')
    environ = {"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    here = RulePolicy(PolicySettings(), sandbox=CONFINED, workspace=tmp_path / "w", environ=environ)

    def asks(path: str) -> bool:
        call = ToolCall("1", "write", {"path": path, "content": ""})
        return here.decide(call, TOOLS["write"], Traits.NONE).verdict == "ask"

    assert [path for path in ("lib/githooks/x", "other/githooks/x", "lib/show", "shared") if not asks(path)] == []
    assert [path for path in ("githooks/x", "lib/src/a", "other/show", "vendor/x/mise.toml") if asks(path)] == []


def test_reply_to_its_own_chat_runs_whatever_is_in_sight_and_a_message_elsewhere_asks() -> None:
    @tool(traits=Traits.SENDS, replies=lambda args, own: args.get("chat", own[1]) == own[1])
    def message(text: str, chat: str = "") -> str:
        """Send it."""
        return text

    own, other = ToolCall("1", "message", {"text": "hi"}), ToolCall("2", "message", {"text": "hi", "chat": "ben"})
    decide = policy().policy.decide
    assert decide(own, message, BOTH).verdict == "allow"
    assert decide(other, message, Traits.NONE).verdict == "ask"
    assert decide(other, message, BOTH, chat=("irc", "ben")).verdict == "allow"
    assert policy(Rule(tool="message", match="*", decide="deny")).policy.decide(own, message, BOTH).verdict == "deny"


@pytest.mark.parametrize(
    ("link", "target", "paths"),
    [
        (".envrc", "src/env.sh", [".envrc", "src/env.sh"]),
        (".husky/pre-commit", "../tools/hk", [".husky/pre-commit", "tools/hk"]),
        (".vscode", "conf", [".vscode/tasks.json", "conf/tasks.json"]),
        (".mcp.json", "conf/m.json", [".mcp.json", "conf/m.json"]),
        (".claude/commands", "../cmds", [".claude/commands/x.md", "cmds/x.md"]),
    ],
)
def test_files_that_run_by_themselves_are_asked_about_through_links_too(
    link: str, target: str, paths: Sequence[str], tmp_path: Path
) -> None:
    for folder in (".husky", ".claude", "src", "conf", "tools", "cmds"):
        (tmp_path / folder).mkdir()
    (tmp_path / link).symlink_to(target)
    verdicts = [verdict(policy(workspace=tmp_path), "write", path=path, content="") for path in [*paths, "src/a.py"]]
    assert verdicts == ["ask", "ask", "allow"]
