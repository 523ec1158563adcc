"""Every piece of TOML in the documentation is what it pretends to be."""

import re
import tomllib
from pathlib import Path

import pytest
from tests.docs.pages import Block, all_blocks

from denizen import load_config
from denizen.worlds.moo.group import open_group

BLOCKS = all_blocks("toml")
PACKAGING = [block for block in BLOCKS if "[project." in block.text]
GROUPS = [block for block in BLOCKS if block.text.startswith("agents = [")]
SETTINGS = [block for block in BLOCKS if block not in PACKAGING + GROUPS]

_FORMS = {
    "TELEGRAM_TOKEN": "1:key",
    "WORK_TOKEN": "2:key",
    "SLACK_BOT_TOKEN": "xoxb-key",
    "SLACK_APP_TOKEN": "xapp-key",
}
"""Keys that must have a certain form."""


@pytest.mark.parametrize("block", SETTINGS, ids=lambda block: block.place)
def test_settings_load(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "denizen.toml"
    file.write_text(block.text)
    keys = {name: _FORMS.get(name, "a-key-of-some-length") for name in re.findall(r"\$\{(\w+)\}", block.text)}
    load_config(file, home=tmp_path, cwd=tmp_path, environ={"HOME": str(tmp_path), **keys})


@pytest.mark.parametrize("block", GROUPS, ids=lambda block: block.place)
def test_groups_load(block: Block, tmp_path: Path) -> None:
    (tmp_path / "group.toml").write_text(block.text)
    assert open_group(tmp_path, {"HOME": str(tmp_path), "MOO_CHAIN_SECRET": "a-secret"}).settings.chain


@pytest.mark.parametrize("block", PACKAGING, ids=lambda block: block.place)
def test_entry_points_are_of_groups_that_are_read(block: Block) -> None:
    groups = tomllib.loads(block.text)["project"]["entry-points"]
    assert groups
    read = ("tools", "models", "drivers", "worlds", "channels", "commands")
    assert {*groups} <= {f"denizen.{group}" for group in read}
