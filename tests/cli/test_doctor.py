"""`denizen doctor`: what was found, and what to do about it."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import PROGRAM, Run
from tests.cli.model import Model, lists, refuses

from denizen.tools.sandbox import launch


def found(text: str, subject: str) -> str:
    """What is said of a subject: its lines, in one."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line[2:].startswith(subject))
    rest = [line for line in lines[start + 1 :][:2] if line.startswith(" ")]
    return "\n".join([lines[start], *rest])


def test_everything_is_looked_at(denizen: Run, model: Model) -> None:
    model.plays(lists("scripted"))
    ran = denizen("doctor")
    assert ran.status == 0
    subjects = [line[2:16].strip() for line in ran.out.splitlines() if line.startswith(("✓", "!", "✗"))]
    assert subjects == [
        "python",
        "home",
        "disk",
        "configuration",
        "workspace",
        "keys",
        "local servers",
        "model",
        "time-outs",
        "sandbox",
        "web search",
        "git",
        "rg",
    ]


def test_a_key_is_named_and_never_shown(denizen: Run) -> None:
    ran = denizen("doctor", ANTHROPIC_API_KEY="sk-planted-canary")
    assert "ANTHROPIC_API_KEY" in found(ran.out, "keys")
    assert "anthropic:" in found(ran.out, "model")
    assert "canary" not in ran.out + ran.err


def test_without_a_key_it_is_usable_and_says_how_to_have_more(denizen: Run) -> None:
    ran = denizen("doctor")
    assert ran.status == 0
    assert "offline" in found(ran.out, "model")
    assert "set a key like ANTHROPIC_API_KEY" in found(ran.out, "model")
    assert "none (ollama, lmstudio, vllm, llamacpp were tried)" in found(ran.out, "local servers")
    assert ran.out.endswith('\n\nDenizen can be used: denizen ask "List the files"\n')


def test_a_local_server_is_found(denizen: Run, model: Model) -> None:
    model.plays(lists("scripted"))
    out = denizen("doctor").out
    assert f"test at {model.server.base_url}" in found(out, "local servers")
    assert found(out, "model").startswith("✓ model         test:scripted (")


def test_the_query_of_an_address_is_not_shown(denizen: Run, home: Path, model: Model) -> None:
    model.plays(lists("scripted"))
    query, settings = "?api-version=1&key=x8fQ2", home / "denizen.toml"
    settings.write_text(settings.read_text().replace(model.server.base_url, model.server.base_url + query))
    with settings.open("a") as file:
        file.write(f'[web.search]\nprovider = "searxng"\nbase_url = "http://user:x8fQ2@localhost:8080{query}"\n')
    out = denizen("doctor").out
    assert f"test at {model.server.base_url}" in found(out, "local servers")
    assert found(out, "web search") == "✓ web search    SearXNG at http://localhost:8080"
    assert "x8fQ2" not in out


def test_a_model_whose_server_does_not_run_makes_it_unusable(denizen: Run, home: Path, nobody: str) -> None:
    (home / "denizen.toml").write_text(f'model = "ollama:qwen3"\n[providers.ollama]\nbase_url = "{nobody}"\n')
    ran = denizen("doctor")
    assert ran.status == 1
    assert f"✗ model         ollama:qwen3: no server answers at {nobody}." in ran.out
    assert "→ Start it, or set providers.ollama.base_url" in found(ran.out, "model")
    assert ran.out.endswith("\n\nFix what is marked ✗ before you use Denizen.\n")


def test_a_model_whose_server_does_not_run_has_one_that_goes_on(denizen: Run, home: Path, nobody: str) -> None:
    (home / "denizen.toml").write_text(
        f'model = "ollama:qwen3"\nfallback_models = ["offline"]\n[providers.ollama]\nbase_url = "{nobody}"\n'
    )
    ran = denizen("doctor")
    assert ran.status == 0
    assert found(ran.out, "model").startswith("! model")
    assert found(ran.out, "fallback") == "✓ fallback      offline"


def test_a_model_that_a_local_server_lacks_is_reported_with_those_it_has(denizen: Run, model: Model) -> None:
    model.plays(lists("qwen3:latest", "gemma3:4b"))
    ran = denizen("doctor")
    assert ran.status == 0
    assert "test:scripted: the server at" in found(ran.out, "model")
    assert "use one that it has: qwen3:latest, gemma3:4b." in found(ran.out, "model")


def test_a_local_server_that_does_not_say_what_it_has_may_do_all_the_same(denizen: Run, model: Model) -> None:
    model.plays(refuses(401, "Say who you are"))
    ran = denizen("doctor")
    assert ran.status == 0
    assert "doesn't list its models" in found(ran.out, "model")


def test_a_model_without_a_tag_is_the_latest(denizen: Run, model: Model) -> None:
    model.plays(lists("scripted:latest"))
    assert found(denizen("doctor").out, "model").startswith("✓ model")


def test_the_workspace_is_that_of_a_turn_begun_here(denizen: Run, repo: Path) -> None:
    assert str(repo) in found(denizen("doctor").out, "workspace")


def test_a_wrong_configuration_makes_it_unusable(denizen: Run, home: Path) -> None:
    (home / "denizen.toml").write_text("modle = 1\n")
    ran = denizen("doctor")
    assert ran.status == 1
    assert "✗ configuration" in ran.out
    assert "modle isn't a setting" in ran.out


def test_a_model_without_a_key_makes_it_unusable(denizen: Run, home: Path) -> None:
    (home / "denizen.toml").write_text('model = "anthropic:claude-sonnet-4-5"\n')
    ran = denizen("doctor")
    assert ran.status == 1
    assert "ANTHROPIC_API_KEY" in found(ran.out, "model")


def test_a_web_search_is_named_or_how_to_have_one(denizen: Run, home: Path) -> None:
    assert "BRAVE_API_KEY" in found(denizen("doctor").out, "web search")
    (home / "denizen.toml").write_text('[web.search]\nprovider = "searxng"\nbase_url = "http://localhost:8080"')
    assert found(denizen("doctor").out, "web search") == "✓ web search    SearXNG at http://localhost:8080"


def test_an_open_home_is_reported(denizen: Run, home: Path) -> None:
    home.chmod(0o755)
    assert f"→ Close it: chmod 700 {home}" in found(denizen("doctor").out, "home")


def test_nothing_is_made_by_looking(denizen: Run, tmp_path: Path) -> None:
    ran = denizen("doctor", DENIZEN_HOME=str(tmp_path / "new" / "home"))
    assert ran.status == 0
    assert f"{tmp_path / 'new' / 'home'} (will be created" in found(ran.out, "home")
    assert not (tmp_path / "new").exists()


def test_a_home_that_cannot_be_made_makes_it_unusable(denizen: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = denizen("doctor", DENIZEN_HOME=str(tmp_path / "file"))
    assert ran.status == 1
    assert "DENIZEN_HOME" in found(ran.out, "home")


@pytest.mark.needs("bwrap")
def test_the_sandbox_says_what_it_promises(denizen: Run) -> None:
    assert "bubblewrap: Commands can write only in the workspace" in found(denizen("doctor").out, "sandbox")


def test_a_sandbox_that_breaks_builds_is_not_fine(repo: Path, environ: dict[str, str]) -> None:
    # under the launcher mounts are refused, as some kernels and containers do
    options = json.dumps({"grants": [["write", "/", []]], "network": True})
    confined = [sys.executable, launch.__file__, options, "--", *PROGRAM, "doctor"]
    out = subprocess.run(confined, cwd=repo, env=environ, capture_output=True, text=True, check=True).stdout
    assert found(out, "sandbox").startswith("! sandbox       Landlock without namespaces: ")
    assert "→ Commands can't make, rename or delete files in the workspace's root" in found(out, "sandbox")
    assert "install bubblewrap" in found(out, "sandbox")


@pytest.mark.parametrize("path", ["", "/nowhere"])
def test_a_socket_whose_name_holds_line_breaks_changes_nothing(denizen: Run, path: str) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0a\nb {os.urandom(8).hex()}")
        listening.listen()
        ran = denizen("doctor", PATH=path or os.environ["PATH"])
    assert (ran.status, ran.err) == (0, "")


def test_missing_programs_are_reported(denizen: Run, tmp_path: Path) -> None:
    ran = denizen("doctor", PATH=str(tmp_path))
    assert ran.status == 0
    assert "→ Install git" in found(ran.out, "git")
    assert "→ Install ripgrep" in found(ran.out, "rg")
