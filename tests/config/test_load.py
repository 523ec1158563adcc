"""What `load` makes of the files, the environment and the options that it finds."""

import importlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from denizen.config.load import Loaded, load, load_config
from denizen.config.redact import Redactor
from denizen.config.settings import AuthProfileSettings, Config
from denizen.config.trust import trust
from denizen.errors import ConfigError

DATA = Path(__file__).parent.parent / "data" / "config"


@dataclass
class Machine:
    """A user's folders: the home directory with the home in it, and a git repository."""

    user: Path
    home: Path
    repository: Path

    def load(
        self, settings: str = "", *, cwd: Path | None = None, environ: Mapping[str, str] | None = None, **options: Any
    ) -> Loaded:
        if settings:
            (self.home / "denizen.toml").write_text(settings)
            (self.home / "denizen.toml").chmod(0o600)
        return load(environ={"HOME": str(self.user), **(environ or {})}, cwd=cwd or self.user, **options)

    def refusal(self, settings: str, **options: Any) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(settings, **options)
        return str(caught.value).replace(str(self.home), "HOME")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    user = tmp_path / "user"
    repository = user / "code" / "project"
    (repository / ".git").mkdir(parents=True)
    (user / ".denizen").mkdir()
    return Machine(user, user / ".denizen", repository)


def test_without_any_file_the_defaults_hold(machine: Machine) -> None:
    loaded = machine.load()
    assert loaded.config.agent.max_iterations == 25
    assert loaded.config.home == machine.home
    assert loaded.config.workspace == loaded.config.agent.workspace_dir == machine.home / "workspace"
    assert loaded.sources == loaded.notices == ()


def test_a_file_of_every_setting_is_read(machine: Machine) -> None:
    config = load_config(
        DATA / "full.toml", home=machine.home, environ={"KEY_1": "first", "KEY_2": "second"}, cwd=machine.user
    )
    assert config.model == "anthropic:claude-sonnet-4-5"
    assert config.providers["anthropic"].auth_profiles == [
        AuthProfileSettings(id="primary", api_key="first"),
        AuthProfileSettings(id="spare", api_key="second"),
    ]
    assert config.agent.temperature == 0.5
    assert config.agent.extra_body == {"metadata": {"user_id": "me"}}
    assert config.budget.day_usd == 10
    assert config.policy.rules[0].decide == "allow"


def test_the_default_workspace_moves_with_the_home(machine: Machine, tmp_path: Path) -> None:
    config = machine.load(environ={"DENIZEN_HOME": str(tmp_path / "elsewhere")}).config
    assert config.home == tmp_path / "elsewhere"
    assert config.workspace == tmp_path / "elsewhere" / "workspace"


def test_the_home_of_the_caller_comes_before_that_of_the_environment(machine: Machine, tmp_path: Path) -> None:
    config = machine.load(home=tmp_path / "given", environ={"DENIZEN_HOME": str(tmp_path / "elsewhere")}).config
    assert config.home == tmp_path / "given"


@pytest.mark.parametrize(("written", "meant"), [("~/work", "user/work"), ("notes", "user/.denizen/notes")])
def test_a_workspace_is_meant_from_the_users_folder_or_the_home(
    machine: Machine, tmp_path: Path, written: str, meant: str
) -> None:
    config = machine.load(f'[agent]\nworkspace_dir = "{written}"').config
    assert config.agent.workspace_dir == tmp_path / meant


def test_a_file_that_is_named_must_be_there(machine: Machine) -> None:
    assert "doesn't exist" in machine.refusal("", path=machine.user / "other.toml")


def test_options_come_over_the_file(machine: Machine) -> None:
    config = machine.load(
        'model = "a:b"\n[agent]\nmax_iterations = 7\nmax_tokens = 9', overrides={"agent": {"max_iterations": 3}}
    ).config
    assert (config.model, config.agent.max_iterations, config.agent.max_tokens) == ("a:b", 3, 9)


def test_options_are_checked_like_the_file(machine: Machine) -> None:
    refusal = machine.refusal("", overrides={"agent": {"max_iterations": 0}})
    assert refusal == "The options: agent.max_iterations: expected an integer of at least 1, found 0."
    assert machine.refusal("", overrides={"agent": None}) == "The options: agent: expected a table, found nothing."


# Mistakes


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('modle = "a:b"', "HOME/denizen.toml:1: modle isn't a setting. Did you mean model?"),
        (
            "# first\n[agent]\n\nmax_iteration = 3",
            "HOME/denizen.toml:4: agent.max_iteration isn't a setting. Did you mean agent.max_iterations?",
        ),
        ("max_tokens = 3", "HOME/denizen.toml:1: max_tokens isn't a setting. Did you mean agent.max_tokens?"),
        (
            '[agent]\nfallbak_models = ["a:b"]',
            ":2: agent.fallbak_models isn't a setting. Did you mean fallback_models, above the first [table]?",
        ),
        (
            "model = offline",
            "HOME/denizen.toml is not valid TOML: Invalid value (at line 1, column 9). A text needs quotes.",
        ),
        (
            "base_url = 1",
            ":1: base_url isn't a setting. Did you mean web.search.base_url or memory.embeddings.base_url?",
        ),
        (
            '[mcp.time]\ncommand = "clock"\ntraits = ["read"]',
            '"untrusted" or "changes", found "read". Did you mean "reads"?',
        ),
        (
            '[mcp.time]\ncommand = "clock"\ntraits = "reads"',
            '"untrusted" or "changes", found a string.',
        ),
        ("timeout = 1", ":1: timeout isn't a setting. Did you mean web.timeout?"),
        (
            "[agent]\nmax_tokens = 1\n[agent]\ntop_k = 1",
            "(at line 3, column 7). That table is there already: write its settings below the first one.",
        ),
        (
            "[agent]\ntop_k = 1\ntop_k = 2",
            "Cannot overwrite a value (at end of document). That setting is there already: change the first one.",
        ),
        (
            '[budget]\ncolour = "red"',
            "HOME/denizen.toml:2: budget.colour isn't a setting. Known here: session_usd, day_usd.",
        ),
        ('home = "/"', "HOME/denizen.toml:1: home isn't a setting."),
        ('[agent]\nmax_tokens = "many"', ":2: agent.max_tokens: expected an integer of at least 1, found a string."),
        ("[agent]\nmax_tokens = 0", ":2: agent.max_tokens: expected an integer of at least 1, found 0."),
        ("[agent]\nmax_cost_usd = nan", ":2: agent.max_cost_usd: expected a number of at least 0, found nan."),
        ("[agent]\nmax_iterations = true", ":2: agent.max_iterations: expected an integer of at least 1, found true."),
        ("agent = 3", ":1: agent: expected a table, found an integer."),
        ('fallback_models = "a:b"', ":1: fallback_models: expected a list of strings, found a string."),
        ("fallback_models = [\n  1,\n]", ":1: fallback_models[0]: expected a string, found an integer."),
        (
            '[providers.x]\napi = "antropic"',
            'or "responses", found "antropic". Did you mean "anthropic"?',
        ),
        (
            '[providers.x]\nauth_profiles = [\n  { id = "a" },\n  { api_kee = "k", id = "b" },\n]',
            ":4: providers.x.auth_profiles[1].api_kee isn't a setting. Did you mean",
        ),
        (
            '[providers.x]\napi_key = "k"',
            "api_key isn't a setting. Did you mean providers.x.auth_profiles = [{ id = …, api_key = … }]?",
        ),
        (
            '[[policy.rules]]\ntool = "a"\ndecide = "ask"\n[[policy.rules]]\ntool = "b"',
            ':4: policy.rules[1] lacks `decide`: "allow", "ask" or "deny".',
        ),
        ("[agent]\r\n\r\nmax = 1\r\n", ":3: agent.max isn't a setting."),
        ('model = """\nmax = 1\n"""\nmax = 1', ":4: max isn't a setting."),
    ],
)
def test_mistakes_are_reported_with_their_place_and_what_is_right(machine: Machine, settings: str, words: str) -> None:
    assert words in machine.refusal(settings)


def test_all_mistakes_are_reported_at_once(machine: Machine) -> None:
    assert len(machine.refusal("a = 1\nb = 2\n[agent]\nc = 3").splitlines()) == 3


def test_a_model_below_the_last_table_is_reported_where_it_has_no_effect(machine: Machine) -> None:
    table = '[memory.embeddings]\nmodel = "anthropic:m"\n'
    (notice,) = machine.load(table).notices
    assert notice.startswith(f"{machine.home}/denizen.toml:2: memory.embeddings.model has no effect without")
    assert notice.endswith("The model that thinks is named above the first [table].")
    assert machine.load(f'{table}base_url = "http://localhost:11434/v1"').notices == ()


def test_a_value_that_may_be_a_secret_is_not_shown(machine: Machine) -> None:
    assert "81549300" not in machine.refusal('[providers.x]\nauth_profiles = [{ id = "a", api_key = 81549300 }]')


def test_bad_toml_is_reported_with_line_and_column(machine: Machine) -> None:
    assert "HOME/denizen.toml is not valid TOML" in machine.refusal("[agent]\nmax_tokens 3")
    assert "line 2, column 12" in machine.refusal("[agent]\nmax_tokens 3")


def test_a_file_nested_without_end_is_refused(machine: Machine) -> None:
    assert "nested too deeply" in machine.refusal("model = " + "[" * 100_000)
    assert "nested too deeply" in machine.refusal(f"[agent.extra_body]\n{'a.' * 5_000}a = 1")


def test_a_file_that_is_not_text_is_refused_with_the_line(machine: Machine) -> None:
    (machine.home / "denizen.toml").write_bytes(b'# ok\nmodel = "\xff"')
    assert machine.refusal("") == "HOME/denizen.toml:2 is not UTF-8 text."


def test_a_folder_in_place_of_the_file_is_reported(machine: Machine) -> None:
    (machine.home / "denizen.toml").mkdir()
    assert "HOME/denizen.toml can't be read" in machine.refusal("")


# Worlds


@pytest.fixture
def garden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[msgspec.Struct]:
    """The settings of a world from another package."""
    (tmp_path / "garden.py").write_text(
        "from types import SimpleNamespace\nfrom typing import Annotated\nimport msgspec\n"
        "class Garden(msgspec.Struct, frozen=True):\n"
        "    beds: Annotated[int, msgspec.Meta(ge=1, le=9)] = 3\n    plants: list[str] = []\n"
        "world, bare = SimpleNamespace(settings=Garden), SimpleNamespace(settings=None)\n"
    )
    package = tmp_path / "garden-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: garden\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[denizen.worlds]\ngarden = garden:world\nbare = garden:bare\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "garden", raising=False)
    return importlib.import_module("garden").Garden


def test_a_world_reads_its_own_table_strictly(machine: Machine, garden: Any) -> None:
    config = machine.load('[garden]\nbeds = 5\nplants = ["${PLANT}"]', environ={"PLANT": "rose"}).config
    assert config.section("garden", garden) == garden(beds=5, plants=["rose"])
    assert config.home == machine.home
    assert machine.load("[garden]").config.section("garden", garden) == garden()
    assert machine.load("[agent]").config.section("garden", garden) == Config().section("garden", garden) == garden()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("[garden]\nbed = 1", ":2: garden.bed isn't a setting. Did you mean garden.beds?"),
        ("[garden]\nbeds = 10", ":2: garden.beds: expected an integer of at least 1 of at most 9, found 10."),
        ("[gardn]\nbeds = 1", ":1: gardn isn't a setting."),
        ("[bare]\nbeds = 1", ":1: bare isn't a setting."),
    ],
)
@pytest.mark.usefixtures("garden")
def test_mistakes_in_a_worlds_table_are_reported_like_ours(machine: Machine, settings: str, words: str) -> None:
    assert words in machine.refusal(settings)


def test_the_table_of_a_world_that_is_not_installed_is_unknown(machine: Machine) -> None:
    assert ":1: garden isn't a setting." in machine.refusal("[garden]\nbeds = 1")


# Variables and secrets


def test_a_reference_is_filled_in_and_a_doubled_dollar_is_none(machine: Machine) -> None:
    settings = '[providers.x]\nbase_url = "http://${HOST}:1/$${HOST}/$HOST/$$"'
    config = machine.load(settings, environ={"HOST": "there"}).config
    assert config.providers["x"].base_url == "http://there:1/${HOST}/$HOST/$$"


def test_what_a_variable_holds_is_not_read_for_references(machine: Machine) -> None:
    config = machine.load('model = "${A}"', environ={"A": "${B}", "B": "no"}).config
    assert config.model == "${B}"


def test_a_variable_may_hold_what_needs_a_certain_form(machine: Machine) -> None:
    text = '[gateway]\ndatabase = "${DATABASE}"'
    assert "expected a string such as" in machine.refusal(text, environ={"DATABASE": "sqlite"})
    assert machine.refusal(text).startswith("HOME/denizen.toml:2: gateway.database needs the variable DATABASE, which")
    assert len(machine.refusal(text).splitlines()) == 1


def test_a_missing_variable_names_the_setting_that_wants_it(machine: Machine) -> None:
    refusal = machine.refusal('[providers.x]\nauth_profiles = [{ id = "a", api_key = "${KEY_1}" }]')
    assert refusal.startswith("HOME/denizen.toml:2: providers.x.auth_profiles[0].api_key needs the variable KEY_1")


@pytest.mark.parametrize("text", ["${", "${}", "${A", "${A-B}", "a${1}"])
def test_a_reference_that_names_no_variable_is_reported(machine: Machine, text: str) -> None:
    assert "names no variable" in machine.refusal(f'model = "{text}"')


def test_variables_come_from_the_homes_dotenv_and_the_environment_wins(machine: Machine) -> None:
    (machine.home / ".env").write_text("A=from the file\nB=from the file")
    loaded = machine.load('model = "${A}"\nfallback_models = ["${B}"]', environ={"B": "from the environment"})
    assert loaded.config.model == "from the file"
    assert loaded.config.fallback_models == ["from the environment"]
    assert loaded.environ["A"] == "from the file"


def test_a_dotenv_of_the_project_is_not_read(machine: Machine) -> None:
    (machine.repository / ".env").write_text("A=planted")
    assert "A" not in machine.load(cwd=machine.repository).environ


def test_what_must_never_be_shown_is_collected(machine: Machine) -> None:
    (machine.home / ".env").write_text("KEY_1=canary-dotenv")
    settings = (
        '[providers.x]\nauth_profiles = [{ id = "a", api_key = "${KEY_1}" }, { id = "b", api_key = "canary-plain" }]\n'
        'headers = { Authorization = "Bearer ${TOKEN}", X-Title = "my agent", X-Author = "canary-author" }\n'
        '[memory.embeddings]\napi_key = "canary-memory"\n[web.search]\napi_key = "canary-search"'
    )
    loaded = machine.load(settings, environ={"TOKEN": "canary-header"})
    assert loaded.secrets == {
        ".env:KEY_1": "canary-dotenv",
        "x.a": "canary-dotenv",
        "x.b": "canary-plain",
        "x.Authorization": "Bearer canary-header\ncanary-header",
        "memory.embeddings": "canary-memory",
        "web.search": "canary-search",
    }


def test_a_key_in_the_file_works_and_a_reference_is_advised(machine: Machine) -> None:
    loaded = machine.load('[providers.x]\nauth_profiles = [{ id = "a", api_key = "k" }]')
    assert loaded.config.providers["x"].auth_profiles[0].api_key == "k"
    (notice,) = loaded.notices
    assert "denizen.toml:2: providers.x.auth_profiles[0].api_key holds a key" in notice


@pytest.mark.parametrize("name", ["denizen.toml", ".env"])
def test_keys_that_others_can_read_are_warned_of(machine: Machine, name: str) -> None:
    (machine.home / ".env").write_text("KEY_1=k")
    (machine.home / "denizen.toml").write_text('[providers.x]\nauth_profiles = [{ id = "a", api_key = "k" }]')
    (machine.home / ".env").chmod(0o600)
    (machine.home / "denizen.toml").chmod(0o600)
    (machine.home / name).chmod(0o644)
    warnings = [notice for notice in machine.load().notices if "chmod 600" in notice]
    assert [str(machine.home / name) in warning for warning in warnings] == [True]


# The policy's rules


def test_a_rule_whose_examples_do_not_hold_is_refused_by_name(machine: Machine) -> None:
    refusal = machine.refusal(
        '[[policy.rules]]\ntool = "read"\ndecide = "allow"\n\n'
        '[[policy.rules]]\ntool = "bash"\nmatch = "git status*"\ndecide = "allow"\nexamples = ["git push"]'
    )
    assert refusal.startswith("HOME/denizen.toml:5: ")
    assert "git status*" in refusal
    assert "git push" in refusal


# Projects


def in_project(machine: Machine, settings: str, *, trusted: bool = True) -> None:
    (machine.repository / "denizen.toml").write_text(settings)
    if trusted:
        trust(machine.home, machine.repository)


def test_a_project_is_read_over_the_users_file_once_it_is_trusted(machine: Machine) -> None:
    in_project(machine, '[agent]\nmax_iterations = 5\nstop = ["b"]')
    config = machine.load('model = "a:b"\n[agent]\nmax_tokens = 7\nstop = ["a", "c"]', cwd=machine.repository).config
    assert config.workspace == machine.repository
    assert (config.model, config.agent.max_tokens, config.agent.max_iterations) == ("a:b", 7, 5)
    assert config.agent.stop == ["b"]


def test_options_come_over_the_project_too(machine: Machine) -> None:
    in_project(machine, 'model = "theirs:1"')
    assert machine.load(cwd=machine.repository, overrides={"model": "mine:1"}).config.model == "mine:1"


def test_a_project_that_is_not_trusted_is_not_read_and_a_notice_says_so(machine: Machine) -> None:
    in_project(machine, "this is [not TOML", trusted=False)
    loaded = machine.load(cwd=machine.repository)
    assert loaded.config.agent.max_iterations == 25
    assert loaded.sources == ()
    assert f"denizen trust {machine.repository}" in loaded.notices[0]


def test_a_project_that_changed_since_is_not_read(machine: Machine) -> None:
    in_project(machine, 'model = "theirs:1"')
    in_project(machine, 'model = "theirs:2"', trusted=False)
    assert machine.load(cwd=machine.repository).config.model == ""


def test_a_pipe_in_place_of_the_projects_file_is_not_waited_for(machine: Machine) -> None:
    os.mkfifo(machine.repository / "denizen.toml")
    assert "not a regular file" in machine.refusal("", cwd=machine.repository)


def test_a_mistake_in_the_projects_file_names_that_file(machine: Machine) -> None:
    in_project(machine, "modle = 1")
    assert f"{machine.repository}/denizen.toml:1: modle" in machine.refusal("", cwd=machine.repository)


def test_a_trusted_projects_hooks_are_added_to_the_users(machine: Machine) -> None:
    in_project(machine, '[[hooks]]\nevent = "turn_end"\ncommand = "theirs"')
    own = '[[hooks]]\nevent = "before_tool"\ncommand = "mine"'
    loaded = machine.load(own, cwd=machine.repository)
    assert [hook.command for hook in loaded.config.hooks] == ["mine", "theirs"]


def test_the_hooks_of_an_untrusted_project_are_not_run(machine: Machine) -> None:
    in_project(machine, '[[hooks]]\nevent = "turn_end"\ncommand = "theirs"', trusted=False)
    loaded = machine.load('[[hooks]]\nevent = "before_tool"\ncommand = "mine"', cwd=machine.repository)
    assert [hook.command for hook in loaded.config.hooks] == ["mine"]


def test_a_time_zone_that_does_not_exist_is_reported(machine: Machine) -> None:
    assert ":2: agent.timezone: 'Mars/Olympus' isn't a time zone" in machine.refusal(
        '[agent]\ntimezone = "Mars/Olympus"'
    )


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ('[providers.anthropic]\nbase_url = "http://thief.example"', "providers"),
        ("[budget]\nday_usd = 1e9", "budget"),
        ('[memory.embeddings]\nbase_url = "http://thief.example"\nmodel = "m"', "memory"),
        ('[agent]\nworkspace_dir = "/"', "agent.workspace_dir"),
        ("[agent]\nrestrict_to_workspace = false", "agent.restrict_to_workspace"),
        ('[gateway]\nhost = "0.0.0.0"', "gateway"),
        ('[agent]\ndriver = "./driver.py"', "agent.driver"),
        ('[sandbox]\ntoolchains = [".ssh"]', "sandbox.toolchains"),
        ('[web.search]\nbase_url = "https://evil.example"', "web.search"),
        ('[sandbox]\nenvironment = ["AWS_SECRET_ACCESS_KEY"]', "sandbox.environment"),
    ],
)
def test_not_even_a_trusted_project_reaches_the_users_keys_money_or_files(
    machine: Machine, settings: str, name: str
) -> None:
    in_project(machine, settings)
    loaded = machine.load(cwd=machine.repository)
    assert loaded.config == machine.load(cwd=machine.repository, workspace=machine.repository).config
    unchanged = Config(home=loaded.config.home, workspace=loaded.config.workspace)
    assert (loaded.config.providers, loaded.config.budget) == (unchanged.providers, unchanged.budget)
    assert (loaded.config.sandbox, loaded.config.memory) == (unchanged.sandbox, unchanged.memory)
    assert loaded.config.agent.restrict_to_workspace
    assert loaded.config.agent.driver == ""
    assert loaded.config.agent.workspace_dir == machine.home / "workspace"
    assert f"{name} is left out" in loaded.notices[0]


def test_the_users_rules_decide_over_the_projects(machine: Machine) -> None:
    in_project(machine, '[policy]\nrules = [{ tool = "bash", match = "*", decide = "allow" }]')
    rules = machine.load(
        '[policy]\nrules = [{ tool = "bash", match = "rm *", decide = "deny" }]', cwd=machine.repository
    ).config.policy.rules
    assert [rule.decide for rule in rules] == ["allow", "deny"]  # the last that matches wins


def test_the_file_of_the_user_is_not_taken_for_the_projects_too(machine: Machine) -> None:
    in_project(machine, 'model = "mine:1"', trusted=False)
    loaded = machine.load(path=machine.repository / "denizen.toml", cwd=machine.repository)
    assert loaded.config.model == "mine:1"
    assert loaded.notices == ()


# MCP servers

_SERVERS = """{"mcpServers": {
    "notes": {"command": "notes-server", "args": ["--home", "${HOME}"], "env": {"MODE": "${MODE:-plain}"}},
    "wiki": {"type": "http", "url": "https://wiki.example/mcp", "headers": {"X-Team": "a"}, "alwaysAllow": []},
    "old": {"type": "sse", "url": "https://old.example/sse"},
    "keyed": {"command": "k", "env": {"TOKEN": "${NOT_SET}"}},
    "odd": {"command": ["not", "text"]}
}}"""


def with_servers(machine: Machine, servers: str, *, trusted: bool = True) -> None:
    (machine.repository / ".mcp.json").write_text(servers)
    if trusted:
        trust(machine.home, machine.repository)


def test_the_servers_of_a_trusted_project_are_read(machine: Machine) -> None:
    with_servers(machine, _SERVERS)
    loaded = machine.load(cwd=machine.repository)
    assert set(loaded.config.mcp) == {"notes", "wiki"}
    notes, wiki = loaded.config.mcp["notes"], loaded.config.mcp["wiki"]
    assert (notes.command, notes.args, notes.env) == ("notes-server", ["--home", str(machine.user)], {"MODE": "plain"})
    assert (wiki.url, wiki.headers) == ("https://wiki.example/mcp", {"X-Team": "a"})
    assert machine.repository / ".mcp.json" in loaded.sources
    left_out = "\n".join(loaded.notices)
    assert "old is left out: its type 'sse' isn't supported" in left_out
    assert "keyed is left out: it needs the variable NOT_SET" in left_out
    assert "odd is left out" in left_out


def test_the_servers_of_an_untrusted_project_are_left_out_with_a_notice(machine: Machine) -> None:
    with_servers(machine, _SERVERS, trusted=False)
    loaded = machine.load(cwd=machine.repository)
    assert loaded.config.mcp == {}
    assert any(".mcp.json" in text and f"denizen trust {machine.repository}" in text for text in loaded.notices)


def test_servers_that_changed_since_are_left_out(machine: Machine) -> None:
    with_servers(machine, '{"mcpServers": {"a": {"command": "harmless"}}}')
    with_servers(machine, '{"mcpServers": {"a": {"command": "worse"}}}', trusted=False)
    assert machine.load(cwd=machine.repository).config.mcp == {}


def test_a_project_cannot_change_the_users_own_server(machine: Machine) -> None:
    in_project(machine, '[mcp.mine]\ncommand = "theirs"')
    with_servers(machine, '{"mcpServers": {"mine": {"command": "theirs"}}}')
    loaded = machine.load('[mcp.mine]\ncommand = "mine"\nenv = { TOKEN = "s" }', cwd=machine.repository)
    assert loaded.config.mcp["mine"].command == "mine"
    assert any("mcp is left out" in text for text in loaded.notices)


def test_a_damaged_file_of_servers_is_left_out_with_a_notice(machine: Machine) -> None:
    with_servers(machine, "{")
    assert any(".mcp.json is left out" in text for text in machine.load(cwd=machine.repository).notices)


def test_a_server_is_a_program_or_an_address(machine: Machine) -> None:
    refusal = machine.refusal('[mcp.both]\ncommand = "a"\nurl = "https://a.example"')
    assert refusal == "HOME/denizen.toml:1: mcp.both has a `command` and a `url`. Remove one of them."


def test_the_secrets_of_servers_are_known(machine: Machine) -> None:
    loaded = machine.load(
        '[mcp.a]\ncommand = "a"\nenv = { API_TOKEN = "tok-123456789", DATABASE = "jdbc;user=sa;x8fQ2" }\n'
        '[mcp.b]\nurl = "https://b.example"\nheaders = { Authorization = "Bearer abcdef123456" }'
    )
    assert {"mcp.a.API_TOKEN", "mcp.a.DATABASE", "mcp.b.Authorization"} <= loaded.secrets.keys()
    redactor = Redactor.from_environ({}, loaded.secrets)
    assert redactor.text("at jdbc;user=sa;x8fQ2") == "at [redacted:mcp.a.DATABASE]"
