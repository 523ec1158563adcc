"""The offline model sums up the README, and names the licence, the authors and the largest files."""

import shutil
from pathlib import Path

import pytest
from tests.models.offline.workshop import Ask, commit

from denizen.messages import ToolResult

ROOT = Path(__file__).parents[3]
BSD = "Redistribution and use in source and binary forms, with or without modification, are permitted.\n"


@pytest.mark.parametrize(
    "question",
    [
        "What does this project do?",
        "what is this repo about?",
        "explain this project",
        "Summarise the README",
        "What's it for?",
    ],
)
async def test_sums_up_the_readme(ask: Ask, question: str) -> None:
    result = await ask(question)
    assert result.reply == "`README.md` says:\n\n> A shop for lamps. Prices are in cents."
    assert [message.name for message in result.messages if isinstance(message, ToolResult)] == ["find", "read"]


async def test_sums_up_a_long_readme_by_its_first_paragraphs_and_headings(ask: Ask, workshop: Path) -> None:
    (workshop / "README.md").unlink()
    shutil.copy(ROOT / "README.md", workshop / "readme.md")
    reply = (await ask("what is this project about?")).reply
    assert reply.startswith("`readme.md` says:\n\n> ")
    assert "\n\nIts headings: Denizen; " in reply
    assert "```" not in reply


async def test_says_that_there_is_no_readme(ask: Ask, workshop: Path) -> None:
    (workshop / "README.md").unlink()
    assert (await ask("what is this about?")).reply == "What this project is for I can't tell: it has no README."


@pytest.mark.parametrize(
    ("path", "text", "answer"),
    [
        ("LICENSE", None, "by `LICENSE`."),
        ("COPYING", "GNU GENERAL PUBLIC LICENSE\n   Version 3, 29 June 2007", "the GNU General Public License 3, by"),
        ("LICENCE.txt", "Apache License\n  Version 2.0, January 2004", "the Apache licence 2.0, by `LICENCE.txt`."),
        ("LICENSE.md", BSD, "a BSD licence of two clauses, by"),
        ("LICENSE.md", BSD + "Neither the name of the copyright holder", "a BSD licence of three clauses, by"),
        ("LICENSE", "\nDo what you like.\n", "I don't know the licence in `LICENSE`. It begins: Do what you like."),
        ("web/package.json", '{"license": "MIT", "name": "x"}', "It is under MIT, as `web/package.json` says"),
        ("pom.xml", "<licenses><license>\n <name>MPL 2</name></license>", "It is under MPL 2, as `pom.xml` says"),
    ],
)
async def test_names_the_licence(ask: Ask, workshop: Path, path: str, text: str | None, answer: str) -> None:
    (workshop / "pyproject.toml").unlink()
    (workshop / path).write_text((ROOT / "LICENSE").read_text() if text is None else text)
    assert answer in (await ask("What is the licence?")).reply
    assert answer in (await ask("how is this licensed")).reply


async def test_says_that_there_is_no_licence(ask: Ask) -> None:
    assert (await ask("which license does it have?")).reply.startswith("I find no licence here")


async def test_a_licence_file_is_still_shown(ask: Ask, workshop: Path) -> None:
    (workshop / "LICENSE").write_text("Do what you like.\n")
    assert "`LICENSE` contains:" in (await ask("show me the LICENSE")).reply


@pytest.mark.parametrize("question", ["Who wrote this?", "who are the authors?", "Who maintains this project?"])
async def test_names_the_authors_by_their_commits(ask: Ask, workshop: Path, question: str) -> None:
    (workshop / "web/page.ts").touch()
    commit(workshop, "Add a page")
    assert (await ask(question)).reply == ("By the commits, this project was written by:\n\n```\nAda  3 commits\n```")


async def test_names_the_authors_of_one_file(ask: Ask) -> None:
    assert (await ask("who wrote web/app.ts?")).reply == (
        "By the commits, `web/app.ts` was written by:\n\n```\nAda  2 commits\n```"
    )
    assert (await ask("who wrote `attic.py`?")).reply == "I find no commits of `attic.py`."


async def test_names_the_authors_without_git_by_their_file(ask: Ask, workshop: Path) -> None:
    shutil.rmtree(workshop / ".git")
    assert (await ask("who wrote this?")).reply.startswith("I can only tell that from git")
    (workshop / "AUTHORS").write_text("Grace\n")
    assert (await ask("who wrote this?")).reply == "`AUTHORS` says:\n\n```\nGrace\n```"


@pytest.mark.parametrize(
    "question", ["What is the largest file?", "Which file is the longest?", "biggest file in this repo"]
)
async def test_names_the_largest_file(ask: Ask, workshop: Path, question: str) -> None:
    (workshop / "vendor").mkdir()
    (workshop / "vendor/large.py").write_text("x\n" * 500)
    (workshop / "long.txt").write_text("x\n\n" * 100)
    reply = (await ask(question)).reply
    assert reply.startswith("The largest file is `long.txt` with 200 lines. After it come:\n\n```\n")
    assert "vendor" not in reply


async def test_names_as_many_of_the_largest_as_are_asked_for(ask: Ask) -> None:
    reply = (await ask("what are the 3 largest python files in src?")).reply
    assert reply.startswith("The largest python file in `src` is `src/shop/prices.py` with 18 lines.")
    assert reply.count("src/shop/cart.py") == 1


@pytest.mark.parametrize("question", ["What does total call?", "which functions are called by total?"])
async def test_names_what_a_function_calls_without_the_code_tools(ask: Ask, question: str) -> None:
    reply = (await ask(question)).reply
    assert reply.startswith("`total` (src/shop/prices.py:17) calls 2 functions, by their names:")
    assert reply.endswith("```\nsum: line 18\nprice_of: line 18\n```")


async def test_what_a_function_calls_ends_with_the_function(ask: Ask, workshop: Path) -> None:
    (workshop / "web/till.ts").write_text(
        "function ring(\n  times: number,\n) {\n  if (times) {\n    bell(times); // not horn()\n  }\n}\n\nhorn(1);\n"
    )
    assert "calls 1 function, by their names:\n\n```\nbell: line 5\n```" in (await ask("what does ring call?")).reply
    assert (await ask("what does horn call?")).reply == "I find no line that defines `horn`."
