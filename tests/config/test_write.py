"""A rule goes into the user's `denizen.toml`, and nothing else there changes."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.config.load import load
from denizen.config.settings import Rule
from denizen.config.write import add_rule, set_tool_default
from denizen.errors import ConfigError

RULE = Rule(tool="bash", match="make *", decide="allow")
INLINE = '{ tool = "bash", match = "make *", decide = "allow" }'
TABLE = '[[policy.rules]]\ntool = "bash"\nmatch = "make *"\ndecide = "allow"\n'


def written(home: Path, text: str, rule: Rule = RULE) -> str:
    (home / "denizen.toml").write_text(text)
    add_rule(home, rule)
    return (home / "denizen.toml").read_text()


def rules_of(home: Path) -> list[Rule]:
    return load(home=home, environ={}, cwd=home).config.policy.rules


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", TABLE, id="an empty file"),
        pytest.param("# mine", f"# mine\n\n{TABLE}", id="a comment alone"),
        pytest.param(
            "[policy]  # mine\npark_hours = 1\n\n[agent]\nmax_tokens = 9\n",
            f"[policy]  # mine\npark_hours = 1\n\n[agent]\nmax_tokens = 9\n\n{TABLE}",
            id="a policy without rules",
        ),
        pytest.param(
            '[[policy.rules]]\ntool = "a"  # ]\ndecide = "ask"\n[agent]\nmax_tokens = 9\n',
            f'[[policy.rules]]\ntool = "a"  # ]\ndecide = "ask"\n[agent]\nmax_tokens = 9\n\n{TABLE}',
            id="rules as tables",
        ),
        pytest.param("[policy]\nrules = []\n", f"[policy]\nrules = [{INLINE}]\n", id="an empty list"),
        pytest.param(
            '[agent]\nstop = ["]"]\n[policy]\nrules = [{ tool = "[a]", decide = "ask" }]  # [mine]\n',
            f'[agent]\nstop = ["]"]\n[policy]\nrules = [{{ tool = "[a]", decide = "ask" }}, {INLINE}]  # [mine]\n',
            id="a list on one line",
        ),
        pytest.param(
            'policy.rules = [\n    # mine ]\n    { tool = "a", decide = "ask" },\n]\n',
            f'policy.rules = [\n    # mine ]\n    {{ tool = "a", decide = "ask" }},\n    {INLINE},\n]\n',
            id="a list on several lines",
        ),
        pytest.param(
            '[policy]\nrules = [\n    { tool = "a", decide = "ask" }\n]\n',
            f'[policy]\nrules = [\n    {{ tool = "a", decide = "ask" }}\n    , {INLINE}\n]\n',
            id="a list whose last comma is missing",
        ),
    ],
)
def test_the_rule_joins_the_others_in_their_form(tmp_path: Path, before: str, after: str) -> None:
    assert written(tmp_path, before) == after
    assert rules_of(tmp_path)[-1] == RULE


def test_a_file_is_made_where_there_is_none(tmp_path: Path) -> None:
    add_rule(tmp_path / "home", RULE)
    assert rules_of(tmp_path / "home") == [RULE]
    assert (tmp_path / "home" / "denizen.toml").stat().st_mode & 0o777 == 0o600


def test_a_rule_that_decides_already_is_not_written_again(tmp_path: Path) -> None:
    once = written(tmp_path, "# mine")
    assert written(tmp_path, once) == once


def test_where_it_cannot_be_added_the_rule_is_handed_to_the_user(tmp_path: Path) -> None:
    before = "policy = { park_hours = 1 }\n"
    with pytest.raises(ConfigError, match="Add it yourself") as caught:
        written(tmp_path, before)
    assert INLINE in str(caught.value)
    assert (tmp_path / "denizen.toml").read_text() == before


def test_a_rule_that_would_be_refused_when_read_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="git push"):
        written(tmp_path, "# mine", Rule(tool="bash", match="make *", decide="allow", examples=["git push"]))
    assert (tmp_path / "denizen.toml").read_text() == "# mine"


def test_a_file_that_is_not_valid_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not valid TOML"):
        written(tmp_path, "[policy")
    assert (tmp_path / "denizen.toml").read_text() == "[policy"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
LISTS = st.sampled_from(["", "[policy]\nrules = []\n", f"[policy]\nrules = [\n  {INLINE}, # c\n]\n"])


@given(pattern=TEXTS | TEXTS.map("${HOME} $${ \x7f".__add__), before=LISTS)
def test_whatever_a_rule_says_it_is_read_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, pattern: str, before: str
) -> None:
    home = tmp_path_factory.mktemp("home")
    rule = Rule(tool="web_fetch", match=pattern, decide="deny")
    (home / "denizen.toml").write_text(before)
    add_rule(home, rule)
    assert tomllib.loads((home / "denizen.toml").read_text())["policy"]["rules"][-1]["tool"] == "web_fetch"
    assert rules_of(home)[-1] == rule


def test_processes_that_add_rules_at_once_lose_none(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib\n"
        "from denizen.config.settings import Rule\n"
        "from denizen.config.write import add_rule\n"
        "for name in sys.argv[2:]: add_rule(pathlib.Path(sys.argv[1]), Rule(tool=name, decide='ask'))\n"
    )
    names = [f"tool_{number}" for number in range(12)]
    halves = [[sys.executable, "-c", script, tmp_path, *names[first::2]] for first in (0, 1)]
    running = [subprocess.Popen(half) for half in halves]
    assert [process.wait(60) for process in running] == [0, 0]
    assert sorted(rule.tool for rule in rules_of(tmp_path)) == sorted(names)


# A tool's default


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", "[tools.grep]\ncontext = 2\n", id="an empty file"),
        pytest.param("# mine", "# mine\n\n[tools.grep]\ncontext = 2\n", id="a comment alone"),
        pytest.param(
            "[agent]\nmax_tokens = 9\n", "[agent]\nmax_tokens = 9\n\n[tools.grep]\ncontext = 2\n", id="other tables"
        ),
        pytest.param(
            '[tools.grep] # mine\nmode = "files"\n[agent]\n',
            '[tools.grep] # mine\ncontext = 2\nmode = "files"\n[agent]\n',
            id="a table of the tool",
        ),
        pytest.param("[tools.grep]", "[tools.grep]\ncontext = 2\n", id="a title alone"),
        pytest.param(
            "[tools.ls]\ncontext = 1\n[tools.grep]\n  context  =  9 # mine\n",
            "[tools.ls]\ncontext = 1\n[tools.grep]\n  context  =  2 # mine\n",
            id="another value",
        ),
        pytest.param("tools.grep.context = 9", "tools.grep.context = 2", id="a dotted key"),
        pytest.param("[tools]\ngrep.context = 9\n", "[tools]\ngrep.context = 2\n", id="a half dotted key"),
        pytest.param("[tools.grep]\ncontext = 2\n", "[tools.grep]\ncontext = 2\n", id="the same value"),
    ],
)
def test_a_default_goes_where_it_belongs(tmp_path: Path, before: str, after: str) -> None:
    (tmp_path / "denizen.toml").write_text(before)
    set_tool_default(tmp_path, "grep", "context", 2)
    assert (tmp_path / "denizen.toml").read_text() == after
    assert load(home=tmp_path, environ={}, cwd=tmp_path).config.tools["grep"]["context"] == 2
    assert (tmp_path / "denizen.toml").stat().st_mode & 0o777 == 0o600


@given(st.text() | st.integers(-1000, 1000) | st.booleans() | st.lists(st.text()))
def test_any_value_reads_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    home = tmp_path_factory.mktemp("home")
    set_tool_default(home, "grep", "glob", value)
    assert load(home=home, environ={}, cwd=home).config.tools == {"grep": {"glob": value}}


def test_a_table_that_cannot_be_edited_is_reported_with_what_to_add(tmp_path: Path) -> None:
    (tmp_path / "denizen.toml").write_text("tools = { grep = { mode = 'files' } }\n")
    with pytest.raises(ConfigError, match=r"Add it yourself: \[tools\.grep\] context = 2"):
        set_tool_default(tmp_path, "grep", "context", 2)
    assert (tmp_path / "denizen.toml").read_text() == "tools = { grep = { mode = 'files' } }\n"
