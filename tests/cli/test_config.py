"""`denizen config init|check|path` and `$DENIZEN_HOME`."""

import stat
import tomllib
from pathlib import Path

import pytest
from tests.cli.conftest import Run


def test_path_is_in_the_home(denizen: Run, home: Path) -> None:
    assert denizen("config", "path").out == f"{home / 'denizen.toml'}\n"


def test_the_home_is_in_the_users_folder_unless_moved(denizen: Run, environ: dict[str, str]) -> None:
    out = denizen("config", "path", DENIZEN_HOME="").out
    assert out == f"{environ['HOME']}/.denizen/denizen.toml\n"


def test_init_makes_a_private_file_that_changes_nothing(denizen: Run, home: Path) -> None:
    assert denizen("config", "init").out == f"{home / 'denizen.toml'}\n"
    text = (home / "denizen.toml").read_text()
    assert "#max_iterations = 25" in text
    assert tomllib.loads(text) == {}
    assert stat.S_IMODE((home / "denizen.toml").stat().st_mode) == 0o600


def test_init_leaves_a_file_that_is_there(denizen: Run, home: Path) -> None:
    (home / "denizen.toml").write_text("model = 'offline'\n")
    ran = denizen("config", "init")
    assert ran.status == 2
    assert "exists already" in ran.err
    assert (home / "denizen.toml").read_text() == "model = 'offline'\n"


def test_check_says_what_was_read_and_what_comes_of_it(denizen: Run, home: Path, repo: Path) -> None:
    (home / "denizen.toml").write_text('# mine\nmodel = "offline"\nfallback_models = ["ollama:qwen3"]\n')
    ran = denizen("config", "check")
    assert ran.status == 0
    assert ran.out.splitlines() == [
        f"read       {home / 'denizen.toml'}",
        f"model      offline ({home / 'denizen.toml'}:2)",
        "then       ollama:qwen3",
        f"workspace  {repo}",
    ]


@pytest.mark.parametrize("command", [("config", "check"), ("ask", "hi"), ("code", "hi")])
def test_a_rule_for_a_tool_that_there_is_not_is_refused(denizen: Run, home: Path, command: tuple[str, ...]) -> None:
    rules = '[{ tool = "view", decide = "ask" }, { tool = "*", decide = "ask" }, { tool = "bsh", decide = "deny" }]'
    (home / "denizen.toml").write_text(f'model = "offline"\n[policy]\nrules = {rules}\n')
    ran = denizen(*command)
    assert "policy.rules[2]: unknown tool 'bsh'. Did you mean bash?" in ran.err
    assert ran.status == 2


def test_check_says_where_the_model_comes_from_when_none_is_set(denizen: Run, home: Path) -> None:
    lines = denizen("config", "check", ANTHROPIC_API_KEY="sk-planted-canary").out.splitlines()
    assert lines[0] == f"read       nothing: {home / 'denizen.toml'} doesn't exist, so the defaults apply"
    assert lines[1].startswith("model      anthropic:")
    assert lines[1].endswith("(none is set; the key is ANTHROPIC_API_KEY)")


def test_check_names_the_project_where_it_sets_the_model(denizen: Run, home: Path, repo: Path) -> None:
    (home / "denizen.toml").write_text('model = "nobody:x"\n')
    (repo / "denizen.toml").write_text('\n\nmodel = "offline"\n')
    denizen("trust", str(repo))
    assert f"model      offline ({repo / 'denizen.toml'}:3)" in denizen("config", "check").out.splitlines()


def test_what_is_added_to_the_file_of_init_is_what_holds(denizen: Run, home: Path) -> None:
    denizen("config", "init")
    with (home / "denizen.toml").open("a") as file:
        file.write('model = "offline"\n')
    lines = (home / "denizen.toml").read_text().splitlines()
    assert f"model      offline ({home / 'denizen.toml'}:{len(lines)})" in denizen("config", "check").out.splitlines()


def test_check_names_every_mistake_and_its_place(denizen: Run, home: Path) -> None:
    (home / "denizen.toml").write_text('modle = "offline"\n[agent]\nmax_iterations = "many"\n')
    ran = denizen("config", "check")
    assert ran.status == 2
    assert "denizen.toml:1: modle isn't a setting" in ran.err
    assert "denizen.toml:3: agent.max_iterations: expected an integer" in ran.err


def test_check_finds_a_model_that_there_is_not(denizen: Run, home: Path) -> None:
    (home / "denizen.toml").write_text('model = "nobody:x"\n')
    assert denizen("config", "check").status == 2


def test_check_reads_another_file(denizen: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("oops")
    ran = denizen("config", "check", "--config", str(tmp_path / "mine.toml"))
    assert ran.status == 2
    assert "mine.toml is not valid TOML" in ran.err


def test_check_says_what_is_not_read(denizen: Run, repo: Path) -> None:
    (repo / "denizen.toml").write_text("model = 'offline'\n")
    ran = denizen("config", "check")
    assert ran.status == 0
    assert f"denizen trust {repo}" in ran.err
