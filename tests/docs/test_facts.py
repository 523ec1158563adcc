"""What the pages list is what there is: nothing is forgotten, nothing invented."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from tests.docs.pages import DOCS, EXAMPLES, ROOT, name

from denizen import Agent, run_agent
from denizen.actions.shell.commands import command_name
from denizen.cli.turns import STATUS
from denizen.entries import AnyEntry
from denizen.events import TurnStop
from denizen.models.providers import PROVIDERS
from denizen.ports import EFFECTS, Toolset, Traits
from denizen.testing import ScriptedModel
from denizen.trusted.autorun import NAME_PROGRAMS
from denizen.worlds.commands import usages

WITH_SEARCH = {**os.environ, "BRAVE_API_KEY": "brave-key"}
"""The environment of somebody who has every tool."""
README = (ROOT / "README.md").read_text("utf-8")


@pytest.fixture
def agent() -> Agent:
    return Agent(model=ScriptedModel(["Hello."]), environ=WITH_SEARCH)


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table after a heading; the title's row is left out."""
    text = (DOCS / page).read_text("utf-8").partition(f"{heading}\n")[2]
    table = re.search(r"^\|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert table, f"{page} has no table after {heading}"
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table[1].splitlines()]


def codes(cells: Sequence[str]) -> list[str]:
    """What is in code signs there."""
    return [code for cell in cells for code in re.findall(r"`([^`]+)`", cell)]


def test_tools_and_their_arguments(agent: Agent) -> None:
    told = {codes(row[:1])[0]: codes(row[1:2]) for row in rows("tools.md", "# Tools")}
    assert told == {tool.name: [*tool.schema.parameters["properties"]] for tool in agent.tools}
    assert " ".join(f"`{name}`" for name in told) in README.replace("\n", " ")


def test_tools_of_the_coder_and_their_commands() -> None:
    agent = Agent(profile="coder", model=ScriptedModel([]), environ=WITH_SEARCH)
    toolset = Toolset(agent.tools)
    table = rows("code.md", "## Tools")
    told = dict(zip(codes([row[0] for row in table]), codes([row[1] for row in table]), strict=True))
    assert told == {tool.name: f"$({command_name(tool, toolset)} …)" for tool in agent.tools}


def test_traits_of_tools(agent: Agent) -> None:
    told = {name: row[1] for row in rows("tools.md", "The standard tools:") for name in codes(row[:1])}
    assert told == {
        tool.name: ", ".join(f"`{trait.name}`" for trait in Traits if trait in tool.traits) for tool in agent.tools
    }


def test_own_tools_that_do_more_than_read_and_why_none_changes_anything_for_good(agent: Agent) -> None:
    coder = Agent(profile="coder", model=ScriptedModel([]), environ=WITH_SEARCH)
    told = codes([row[0] for row in rows("tools.md", "None of Denizen's own tools `CHANGES` anything:\n")])
    tools = {tool.name: tool.traits for tool in (*agent.tools, *coder.tools)}
    more = EFFECTS | Traits.NETWORK | Traits.DELEGATES
    assert [name for name, traits in tools.items() if traits & more and name not in told] == []
    assert [name for name, traits in tools.items() if Traits.CHANGES in traits] == []


def test_messages_that_troubleshooting_explains() -> None:
    source = "".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    page = (DOCS / "troubleshooting.md").read_text("utf-8")
    messages = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert messages
    assert [message for message in messages if message not in source] == []


def test_upgrading_names_modules_where_they_are_now() -> None:
    table = rows("upgrading.md", "Modules outside the public names have moved:")
    moved = [(old, new) for row in table[:3] for old in codes(row[:1])[:1] for new in codes(row[1:2])[:1]]
    assert len(moved) == 3
    assert [new for _, new in moved if find_spec(new) is None] == []
    assert [old for old, new in moved if old != new.rpartition(".")[0] and find_spec(old)] == []


def test_modules_that_architecture_names_exist() -> None:
    sources = [path.as_posix() for path in (ROOT / "src" / "denizen").rglob("*.py")]
    named = re.findall(r"`((?:\w+/)*\w+\.py)`", (DOCS / "architecture.md").read_text("utf-8"))
    assert len(named) > 50
    assert [name for name in named if not any(source.endswith(f"/{name}") for source in sources)] == []


def test_modules_of_a_text_world_exist() -> None:
    lines = (DOCS / "moo.md").read_text("utf-8").partition("| # | modules |")[2].split("\n\n")[0].splitlines()[2:]
    named = [name for line in lines for name in codes([line.split("|")[2]]) if name.isidentifier()]
    assert len(named) > 8
    folder = ROOT / "src" / "denizen" / "worlds" / "moo"
    assert [name for name in named if not (folder / f"{name}.py").exists()] == []


def test_traits() -> None:
    assert codes([row[0] for row in rows("tools.md", "## Traits")]) == [trait.name for trait in Traits]


def test_providers_and_where_their_keys_are() -> None:
    told = [(provider, codes(row[1:2])) for row in rows("models.md", "## Providers") for provider in codes(row[:1])]
    known = {provider.name: [provider.key_variable][: bool(provider.key_variable)] for provider in PROVIDERS.values()}
    assert dict(told) == known | {"bedrock": [], "offline": []}


def test_types_of_entries() -> None:
    told = codes([row[0] for row in rows("sessions.md", "## Entries")])
    assert {*told} == {entry.__struct_config__.tag for entry in get_args(AnyEntry)}


def test_reasons_to_stop() -> None:
    told = codes([row[0] for row in rows("library.md", "says why it ended:")])
    assert {*told} == {*get_args(TurnStop)}


def test_exit_statuses() -> None:
    told = {int(row[0]) for row in rows("cli.md", "## For programs")}
    assert told == {*STATUS.values(), 2}


def test_slash_commands() -> None:
    told = [(codes(row[:1])[0], row[1]) for row in rows("cli.md", "## chat")]
    assert [usage for usage, _ in told] == [*usages("terminal").values()]


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_every_example_is_shown(example: Path) -> None:
    pages = {"recipes": "recipes.md", "webhook": "channels/webhook.md"}
    page = pages.get(example.parent.name, "extending.md")
    assert f"--8<--\n{name(example)}\n--8<--" in (DOCS / page).read_text("utf-8")


async def test_size_of_prompt_and_tools(agent: Agent) -> None:
    """What is said may differ by the sandbox of the machine and the length of its paths."""
    async with agent:
        await run_agent("Hello", agent=agent)
    assert isinstance(agent.model, ScriptedModel)
    [request] = agent.model.requests
    prompt = re.sub(r"<bootstrap-files>.*</bootstrap-files>", "", request.system, flags=re.DOTALL)
    told = re.search(r"take about ([\d,]+)\s+bytes", README)
    assert told
    assert len(prompt.encode()) + len(msgspec.json.encode(request.tools)) == pytest.approx(
        int(told[1].replace(",", "")), abs=300
    )


def test_figures_are_those_of_the_latest_benchmark_run() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "figures.py"), "--check"]
    check = subprocess.run(command, capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stdout + check.stderr


def test_pictures_load_nothing_and_name_no_machine() -> None:
    pictures = sorted((DOCS / "images").glob("*.svg"))
    assert pictures
    for picture in pictures:
        text = picture.read_text("utf-8")
        assert not re.search(r"url\((?!#)|href|@import|@font-face|/(?:root|home|tmp)/", text)


def test_safety_lists_all_files_that_name_programs() -> None:
    text = (DOCS / "safety.md").read_text("utf-8").partition("*What runs by itself*")[2]
    listed = {
        word
        for row in re.findall(r"^\| (?:shells|editors|agents|husky) \|.*$", text, re.MULTILINE)
        for word in re.findall(r"`([^`]+)`", row)
    }
    ours = {".claude/agents", "denizen.toml", ".denizen"}
    assert listed == {*NAME_PROGRAMS, *ours}
