"""The offline model says in what languages a project is written."""

import shutil
from pathlib import Path

import pytest
from tests.models.offline.workshop import Ask

from denizen.messages import ToolResult


@pytest.mark.parametrize(
    "question",
    [
        "What language is this project?",
        "which languages are used here?",
        "Could you tell me what programming languages this repo uses, please?",
        "What is it written in?",
        "What's the tech stack?",
    ],
)
async def test_names_the_main_language_and_the_others_by_real_counts(ask: Ask, question: str) -> None:
    result = await ask(question)
    assert result.reply.startswith("This project has 7 source files: Python (3), C (1), Go (1), Rust (1)")
    assert all(f"{language} (1)" in result.reply for language in ("TypeScript", "Go", "C", "Rust", "Markdown"))
    assert [message.name for message in result.messages if isinstance(message, ToolResult)] == ["find"]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("is this a Rust project?", "In part."),
        ("is it JavaScript?", "No."),
        ("is this a Java project?", "In part."),
        ("is it Python", "Yes."),
        ("Is this written in PHP?", "No."),
    ],
)
async def test_says_whether_it_is_written_in_a_language(ask: Ask, workshop: Path, question: str, said: str) -> None:
    (workshop / "web/Till.java").touch()
    assert (await ask(question)).reply.startswith(f"{said} This project has 8 source files: Python (3), ")


async def test_queries_of_tree_sitter_are_not_scheme(ask: Ask, workshop: Path) -> None:
    for path in ("queries/python.scm", "src/shop/queries/go.scm"):
        (workshop / path).parent.mkdir(exist_ok=True)
        (workshop / path).touch()
    reply = (await ask("what language is this?")).reply
    assert "7 source files: Python (3)" in reply
    assert "Scheme" not in reply


async def test_says_that_there_is_no_source_code(ask: Ask, workshop: Path) -> None:
    for folder in ("web", "tools", "src"):
        shutil.rmtree(workshop / folder)
    assert (await ask("what language is this?")).reply.startswith("I find no source code here, only")


async def test_counts_a_workspace_of_many_pages(ask: Ask, workshop: Path) -> None:
    for number in range(700):
        (workshop / f"src/part{number}.py").touch()
    assert "707 source files: Python (703)" in (await ask("what language is this?")).reply


async def test_says_that_it_sees_only_a_part(ask: Ask, workshop: Path) -> None:
    little = {"max_tool_result_chars": 60}
    assert (await ask("list the files", settings=little)).reply.startswith("There are 15 files:")
    assert "That is its beginning" in (await ask("show me README.md", settings=little)).reply
    for number in range(100):
        (workshop / f"src/part{number}.py").touch()
    reply = (await ask("list the files", settings=little)).reply
    assert reply.endswith("I see only a part of the files; there are more.")


@pytest.mark.parametrize("folder", ["vendor", "src/third_party/lamp", "tests/data", "tests/shop/data/a", "fixtures"])
async def test_what_others_wrote_or_tests_read_is_not_the_projects(ask: Ask, workshop: Path, folder: str) -> None:
    (workshop / "pyproject.toml").unlink()
    (workshop / folder).mkdir(parents=True)
    shutil.copy(workshop / "src/shop/cart.py", workshop / folder / "cart.py")
    shutil.copy(workshop / "web/package.json", workshop / folder / "package.json")
    reply = (await ask("what language is this?")).reply
    assert "7 source files: Python (3)" in reply
    assert " Not counted: 2 files of test data or by others." in reply
    assert folder not in (await ask("list the dependencies")).reply


async def test_folders_called_data_are_the_projects_unless_tests_read_them(ask: Ask, workshop: Path) -> None:
    (workshop / "data").mkdir()
    shutil.copy(workshop / "src/shop/cart.py", workshop / "data/cart.py")
    assert "8 source files: Python (4)" in (await ask("what language is this?")).reply
