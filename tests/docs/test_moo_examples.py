"""The agents in examples/moo are ones that can be started."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.docs.pages import ROOT

from denizen.cli.main import cli
from denizen.worlds.moo.group import open_group
from denizen.worlds.moo.token_pages import Chain

GROUP = ROOT / "examples" / "moo"
AGENTS = ["Foreman", "Mason", "Tinker", "Joiner", "Harbinger"]


@pytest.mark.parametrize("name", AGENTS)
def test_each_agent_passes_the_check_with_its_password_set(name: str, tmp_path: Path) -> None:
    variables = {f"MOO_{name.upper()}_PASSWORD": "a-pass-1", "DENIZEN_HOME": str(tmp_path)}
    (tmp_path / "denizen.toml").write_text('model = "ollama:some"\n')  # of a server that isn't asked
    ran = CliRunner(env=variables).invoke(cli, ["moo", "check", str(GROUP / name)])
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert f"plays    {name.lower()} at localhost:8022 (ssh)" in ran.stdout


def test_they_are_a_chain_that_the_foreman_leads(tmp_path: Path) -> None:
    members = open_group(GROUP, {"DENIZEN_HOME": str(tmp_path)}).members(environ={"DENIZEN_HOME": str(tmp_path)})
    assert [member.name for member in members] == AGENTS
    chains = [
        Chain.of(each.settings.user, each.settings.token_chain, each.settings.foreman)
        for each in (member for member in members)
    ]
    assert [chain.is_orchestrator for chain in chains] == [True, False, False, False, False]
    assert {chain.members for chain in chains} == {("Mason", "Tinker", "Joiner", "Harbinger")}
    assert {chain.foreman for chain in chains} == {"Foreman"}
