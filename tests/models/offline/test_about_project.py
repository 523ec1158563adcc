"""The offline model sums up the README, and names the licence, the authors and the largest files."""

import shutil
from pathlib import Path

import pytest
from tests.models.offline.workshop import Ask, commit

from denizen.messages import ToolResult

ROOT = Path(__file__).parents[3]


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


async def test_sums_up_a_long_readme_by_its_first_paragraphs(ask: Ask, workshop: Path) -> None:
    (workshop / "README.md").unlink()
    shutil.copy(ROOT / "README.md", workshop / "readme.md")
    reply = (await ask("what is this project about?")).reply
    assert reply.startswith("`readme.md` says:\n\n> ")
    assert "```" not in reply


async def test_says_that_there_is_no_readme(ask: Ask, workshop: Path) -> None:
    (workshop / "README.md").unlink()
    assert (await ask("what is this about?")).reply == "What this project is for I can't tell: it has no README."


@pytest.mark.parametrize(
    ("path", "text", "answer"),
    [
        ("LICENSE", None, "`LICENSE` begins:\n\n```\nMIT License\n"),
        (
            "COPYING",
            "\n GNU GENERAL PUBLIC LICENSE\n  Version 3",
            "`COPYING` begins:\n\n```\n\n GNU GENERAL PUBLIC LICENSE",
        ),
        ("LICENCE.txt", "Do what you like.\n", "`LICENCE.txt` begins:\n\n```\nDo what you like.\n```"),
        (
            "web/package.json",
            '{"license": "MIT", "name": "x"}',
            'Manifests say:\n\n```\nweb/package.json: {"license": "MIT"',
        ),
        (
            "pom.xml",
            "<licenses><license>\n <name>MPL 2</name></license>",
            "Manifests say:\n\n```\npom.xml: <licenses><license>",
        ),
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


@pytest.mark.parametrize(
    "question", ["What is the largest file?", "Which file is the longest?", "biggest file in this repo"]
)
async def test_names_the_largest_file(ask: Ask, workshop: Path, question: str) -> None:
    (workshop / "vendor").mkdir()
    (workshop / "vendor/large.py").write_text("x\n" * 500)
    (workshop / "long.txt").write_text("x\n\n" * 100)
    reply = (await ask(question)).reply
    assert reply.startswith("The largest files:\n\n```\nlong.txt  200 lines\n")
    assert "vendor" not in reply


async def test_names_as_many_of_the_largest_as_are_asked_for(ask: Ask) -> None:
    reply = (await ask("what are the 3 largest python files in src?")).reply
    assert reply.startswith("The largest python files in `src`:\n\n```\nsrc/shop/prices.py  18 lines\n")
    assert reply.count("src/shop/cart.py") == 1
