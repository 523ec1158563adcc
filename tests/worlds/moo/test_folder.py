"""What an agent's directory says: its own settings over the home's, and what nobody is asked to trust."""

import math
from pathlib import Path

import pytest

from denizen.config.trust import trust
from denizen.errors import ConfigError
from denizen.worlds.moo.folder import AgentFolder, open_folder

OLD = """
[ssh]
host = "moo.example"
port = 8022
user = "mason"
password = "hunter-22-old"

[llm]
provider = "lm_studio"
model = "gemma-4"
base_url = "http://localhost:1234/v1"
aws_region = "eu-1"

[agent]
command_rate_per_second = 0.5
memory_window_lines = 50
idle_wakeup_seconds = 0
min_p = 0.05

[lore]
books = 3
"""


class Machine:
    """A home, and the directory of an agent."""

    def __init__(self, root: Path) -> None:
        self.home, self.folder = root / "home", root / "Mason"
        self.home.mkdir(mode=0o700)
        self.folder.mkdir()
        (self.folder / "SOUL.md").write_text("# Name\nMason\n")
        self.environ = {"HOME": str(root), "DENIZEN_HOME": str(self.home)}

    def open(self, *, own: str = "", old: str = "", home: str = "", **environ: str) -> AgentFolder:
        for path, text in (
            (self.folder / "denizen.toml", own),
            (self.folder / "settings.toml", old),
            (self.home / "denizen.toml", home),
        ):
            if text:
                path.write_text(text)
        return open_folder(self.folder, environ=self.environ | environ)

    def refusal(self, **given: str) -> str:
        with pytest.raises(ConfigError) as caught:
            self.open(**given)
        return str(caught.value)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_its_own_settings_come_over_those_of_the_home(machine: Machine) -> None:
    folder = machine.open(
        home='model = "offline"\n[moo]\nhost = "moo.example"\nuser = "nobody"', own='[moo]\nuser = "mason"'
    )
    assert (folder.settings.host, folder.settings.user, folder.loaded.config.model) == (
        "moo.example",
        "mason",
        "offline",
    )
    assert folder.session_key == "agent:mason:channel:moo:account:mason@moo.example:peer:direct:world"
    assert folder.notices == ()


def test_a_directory_that_nobody_trusts_sets_its_model_but_no_policy_sandbox_or_hook(machine: Machine) -> None:
    own = 'model = "offline"\nhooks = [{event = "notice", command = "true"}]\n[sandbox]\nnetwork = true\n'
    own += '[moo]\nuser = "mason"'
    folder = machine.open(own=own)
    config = folder.loaded.config
    assert (config.model, config.sandbox.network, config.hooks) == ("offline", False, [])
    assert (
        f"is not read but for model, moo. If you trust this folder: denizen trust {machine.folder}" in folder.notices[0]
    )
    trust(machine.home, machine.folder)
    config = machine.open().loaded.config
    assert (config.model, config.sandbox.network, len(config.hooks)) == ("offline", True, 1)


def test_a_directory_that_nobody_trusts_gets_no_variable(machine: Machine) -> None:
    own = '[moo]\nuser = "m"\npassword = "${ANTHROPIC_API_KEY}"'
    assert "denizen.toml:3: moo.password needs a variable" in machine.refusal(own=own, ANTHROPIC_API_KEY="a-key")
    own = '[moo]\nuser = "m"\npassword_env = "ANTHROPIC_API_KEY"'
    assert "denizen.toml:3: moo.password_env" in machine.refusal(own=own)
    trust(machine.home, machine.folder)


def test_the_password_is_found_in_the_environment_and_kept_out_of_what_is_shown(machine: Machine) -> None:
    assert machine.open(own='[moo]\nuser = "mason"', MOO_PASSWORD="mason-pass-123").password == "mason-pass-123"
    folder = machine.open(own='[moo]\nuser = "mason"\npassword = "mason-pass-456"')
    assert folder.password == "mason-pass-456"
    assert folder.loaded.secrets["moo.password"] == "mason-pass-456"


def test_a_mistake_is_reported_with_its_line(machine: Machine) -> None:
    refusal = machine.refusal(own='[moo]\nuser = "mason"\nidle_wakeup = 3')
    assert "denizen.toml:3: moo.idle_wakeup isn't a setting. Did you mean moo.idle_wakeup_seconds?" in refusal
    assert "[moo] lacks `user`" in machine.refusal(own="[moo]\nport = 1")


def test_an_old_settings_file_is_read_and_its_password_too(machine: Machine) -> None:
    folder = machine.open(old=OLD)
    settings, config = folder.settings, folder.loaded.config
    assert (settings.host, settings.user, folder.password) == ("moo.example", "mason", "hunter-22-old")
    assert (settings.memory_window_lines, settings.idle_wakeup_seconds, settings.min_p) == (50, 0, 0.05)
    assert config.model == "lmstudio:gemma-4"
    assert config.providers["lmstudio"].base_url == "http://localhost:1234/v1"
    notices = "\n".join(folder.notices)
    assert "settings.toml:6: ssh.password is a password in a file that may be shared" in notices
    assert "llm.aws_region has no effect here" in notices
    assert "lore.books has no effect here" in notices


def test_its_denizen_toml_comes_over_an_old_settings_file(machine: Machine) -> None:
    folder = machine.open(old=OLD, own='model = "offline"\n[moo]\nuser = "tinker"')
    assert (folder.settings.user, folder.settings.host, folder.loaded.config.model) == (
        "tinker",
        "moo.example",
        "offline",
    )


def test_an_old_settings_file_sends_no_key_to_another_machine(machine: Machine) -> None:
    folder = machine.open(old=OLD.replace("http://localhost:1234/v1", "http://collector.example/v1"))
    assert folder.loaded.config.providers == {}
    assert any("llm.base_url has no effect here" in notice for notice in folder.notices)


def test_the_chain_of_the_environment_comes_over_the_settings(machine: Machine) -> None:
    own = '[moo]\nuser = "foreman"\ntoken_chain = ["mason"]'
    assert machine.open(own=own, MOO_TOKEN_CHAIN="mason, tinker,").settings.token_chain == ["mason", "tinker"]


def test_a_directory_without_a_soul_is_no_agents(machine: Machine) -> None:
    (machine.folder / "SOUL.md").unlink()
    assert "has no SOUL.md" in machine.refusal()


@pytest.mark.parametrize(("own", "most"), [("", math.inf), ("session_usd = 20.0", 20.0)])
def test_what_its_session_has_cost_ends_a_character_only_where_its_own_setting_says_so(
    machine: Machine, own: str, most: float
) -> None:
    folder = machine.open(own=f'[moo]\nuser = "mason"\n{own}', home="[budget]\nsession_usd = 1.0\nday_usd = 2.0")
    assert (folder.config.budget.session_usd, folder.config.budget.day_usd) == (most, 2.0)
