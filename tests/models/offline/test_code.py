"""The offline model as a coder: it uses the code tools, and does without them where it hasn't got them."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.models.offline.workshop import WORKSHOP, Ask

from denizen import RunResult, run_agent
from denizen.config import Config
from denizen.config.settings import AgentSettings
from denizen.messages import ToolResult
from denizen.worlds.assemble import Agent


@pytest.fixture
def workshop(tmp_path: Path) -> Path:
    return shutil.copytree(WORKSHOP, tmp_path / "workshop")


@pytest.fixture
def ask(workshop: Path, tmp_path: Path) -> Ask:
    """Ask a coder: `await ask("who calls total?")`; or with `profile="assistant"` one without the code tools."""
    home = tmp_path / "home"

    async def run(question: str, *, profile: str = "coder", **options: Any) -> RunResult:
        config = Config(model="offline", home=home, workspace=workshop, agent=AgentSettings(workspace_dir=home / "own"))
        return await run_agent(question, agent=Agent(config, profile=profile), **options)

    return run


def used(result: RunResult) -> list[str]:
    """The tools that were used, in order."""
    return [message.name for message in result.messages if isinstance(message, ToolResult)]


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("where is PriceList defined?", "src/shop/prices.py:6: class PriceList"),
        ("Where is `PriceList.price_of` implemented?", "src/shop/prices.py:9: def price_of(self, article: str) -> int"),
        ("where is refresh defined in src?", "src/shop/prices.py:13: async def refresh"),
        ("where is the interface Basket?", "web/app.ts:1: export interface Basket"),
        ("where is Weigh defined?", "tools/scale.go:7: func (s *Scale) Weigh() int"),
        ("where is the trait Press", "tools/press.rs:1: pub trait Press"),
    ],
)
async def test_the_index_knows_where_something_is_defined(ask: Ask, question: str, place: str) -> None:
    result = await ask(question)
    assert " is defined in " in result.reply
    assert place in result.reply
    assert used(result) == ["view"]


async def test_what_is_no_code_is_found_by_patterns(ask: Ask) -> None:
    result = await ask("where is ship defined?")
    assert "Makefile:1: ship: build" in result.reply
    assert used(result) == ["view", "grep"]


@pytest.mark.parametrize(
    "question",
    [
        "who calls price_of?",
        "what calls the method price_of",
        "which functions call price_of?",
        "where is `price_of` called from?",
        "find the callers of price_of in src",
    ],
)
async def test_callers_are_reported(ask: Ask, question: str) -> None:
    result = await ask(question)
    assert result.reply.startswith("Calls of `price_of`")
    assert "\nsrc/shop/prices.py/total:18\n" in result.reply
    assert used(result) == ["analyze"]


@pytest.mark.parametrize(
    "question", ["what does total call?", "Which functions does `total` call?", "callees of total"]
)
async def test_callees_are_reported(ask: Ask, question: str) -> None:
    result = await ask(question)
    assert result.reply.startswith("Calls in `total`:\n\n```\n[src/shop/prices.py/total:17 calls]\n")
    assert "price_of  src/shop/prices.py/PriceList/price_of:9\n[not defined here: sum]" in result.reply
    assert used(result) == ["analyze"]


async def test_a_name_that_nobody_calls_is_looked_for_as_text(ask: Ask) -> None:
    result = await ask("who calls LAMP_CENTS?")
    assert result.reply.startswith("`LAMP_CENTS` is in 4 places in 2 files:")
    assert used(result) == ["analyze", "grep"]


async def test_callers_are_found_as_text_without_the_code_tools(ask: Ask) -> None:
    result = await ask("who calls price_of?", profile="assistant")
    assert "src/shop/prices.py:18:" in result.reply
    assert used(result) == ["grep"]


@pytest.mark.parametrize(
    "question",
    [
        "what are the longest functions?",
        "Which function is the longest?",
        "show me the longest functions of this project",
        "list the biggest methods",
    ],
)
async def test_the_longest_functions_are_listed(ask: Ask, question: str) -> None:
    result = await ask(question)
    assert result.reply.startswith("The longest functions:\n\n```\n[")
    assert "tools/bell.c/ring_bell:4" in result.reply.split("\n")[4]
    assert used(result) == ["analyze"]


@pytest.mark.parametrize(
    "question",
    [
        "what are the most complex functions?",
        "how complex is this code?",
        "Show me the most complicated functions here",
    ],
)
async def test_the_most_complex_functions_are_listed(ask: Ask, question: str) -> None:
    result = await ask(question)
    assert result.reply.startswith("The most complex functions:\n\n```\n[")
    assert "src/shop/prices.py/PriceList/price_of:9" in result.reply.split("\n")[4]
    assert used(result) == ["analyze"]


@pytest.mark.parametrize("question", ["how complex is src/shop?", "how complex are the functions in src/shop?"])
async def test_complexity_of_a_place_is_that_of_the_place(ask: Ask, question: str) -> None:
    assert (await ask(question)).reply.startswith("The most complex functions in `src/shop`:\n\n```\n[4 functions;")


async def test_as_many_functions_are_listed_as_are_asked_for(ask: Ask) -> None:
    reply = (await ask("what are the 2 longest functions in src?")).reply
    assert reply.startswith("The longest functions in `src`:")
    assert reply.count(".py/") == 2


@pytest.mark.parametrize("question", ["what are the longest functions?", "what does total call?"])
async def test_without_the_tool_it_says_so(ask: Ask, question: str) -> None:
    reply = (await ask(question, profile="assistant")).reply
    assert reply == "I need the tool `analyze` for that, and this session has none. Ask it in `denizen code`."


async def test_dependencies_come_from_the_lock_files_too(ask: Ask, workshop: Path) -> None:
    shutil.copytree(WORKSHOP.parents[1] / "packages" / "npm3", workshop, dirs_exist_ok=True)
    result = await ask("what are the dependencies?")
    assert "  chalk 4.1.2 (^4.0.0)\n" in result.reply
    assert (
        "[not looked at, give it as `path`: docs/requirements.txt, tools/Cargo.toml, tools/go.mod, web/package.json]"
        in result.reply
    )
    assert used(result) == ["package"]


async def test_a_manifest_that_the_tool_does_not_know_is_shown(ask: Ask, workshop: Path) -> None:
    for name in ("pyproject.toml", "web/package.json", "tools/go.mod", "tools/Cargo.toml", "docs/requirements.txt"):
        (workshop / name).unlink()
    shutil.copy(WORKSHOP.parent / "manifests" / "Gemfile", workshop)
    assert "`Gemfile` contains:" in (await ask("what are the dependencies?")).reply


async def test_files_and_folders_are_shown(ask: Ask, workshop: Path) -> None:
    assert "# Workshop\n\nA shop for lamps." in (await ask("what does README.md contain?")).reply
    assert "`src/shop/cart.py` contains:" in (await ask("what does cart.py contain?")).reply
    assert "There are 3 files in `src`:" in (await ask("what does src contain?")).reply
    assert (await ask("what does nowhere.txt contain?")).reply == "There is no `nowhere.txt` here."
