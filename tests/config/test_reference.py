"""Every setting is documented, and the file to start from says what holds without it."""

import re
import tomllib
from pathlib import Path

import pytest

from denizen.config.load import load
from denizen.config.reference import all_settings, starter_file
from denizen.errors import ConfigError


def test_every_setting_says_what_it_means() -> None:
    settings = {setting.name: setting for setting in all_settings()}
    assert all(setting.doc and setting.type for setting in settings.values())
    assert settings["agent.max_iterations"].default == "25"
    assert settings["agent.max_iterations"].type == "an integer of at least 1"
    assert settings["agent.max_iterations"].doc == "Model calls in one turn."
    assert {"model", "providers.NAME.auth_profiles[].api_key", "policy.rules[].decide"} < settings.keys()
    assert not {"home", "workspace"} & settings.keys()


def test_the_starter_file_changes_nothing(tmp_path: Path) -> None:
    plain = load(home=tmp_path, environ={}, cwd=tmp_path)
    (tmp_path / "denizen.toml").write_text(starter_file())
    loaded = load(home=tmp_path, environ={}, cwd=tmp_path)
    assert loaded.sources == (tmp_path / "denizen.toml",)
    assert loaded.config == plain.config


def test_its_lines_are_the_defaults_when_their_mark_is_taken_away(tmp_path: Path) -> None:
    lines = [line for line in starter_file().splitlines() if not line.endswith("# an example: it has no default")]
    text = "\n".join(re.sub(r"^#(?! )", "", line) for line in lines)
    assert tomllib.loads(text)["agent"]["max_cost_usd"] == 5.0
    plain = load(home=tmp_path, environ={}, cwd=tmp_path).config
    (tmp_path / "denizen.toml").write_text(text)
    config = load(home=tmp_path, environ={}, cwd=tmp_path).config
    assert (config.agent, config.sandbox, config.policy) == (plain.agent, plain.sandbox, plain.policy)


def test_every_line_is_a_setting_when_its_mark_is_taken_away(tmp_path: Path) -> None:
    text = re.sub(r"(?m)^#(?! )", "", starter_file())
    (tmp_path / "denizen.toml").write_text(text)
    assert (
        tomllib.loads(text)["agent"]["temperature"] == load(home=tmp_path, environ={}).config.agent.temperature == 1.0
    )


def test_what_is_added_at_its_end_is_in_no_table(tmp_path: Path) -> None:
    (tmp_path / "denizen.toml").write_text(f'{starter_file()}model = "ollama:qwen3"\n[agent]\nmax_iterations = 7\n')
    config = load(home=tmp_path, environ={}, cwd=tmp_path).config
    assert (config.model, config.agent.max_iterations) == ("ollama:qwen3", 7)


def test_a_setting_outside_its_table_is_reported_with_its_table(tmp_path: Path) -> None:
    text = starter_file().replace("#max_iterations = 25", "max_iterations = 7")
    (tmp_path / "denizen.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"Did you mean agent\.max_iterations\?"):
        load(home=tmp_path, environ={}, cwd=tmp_path)
