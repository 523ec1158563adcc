"""The offline model shows what is in a file or a folder."""

from pathlib import Path

import pytest
from tests.documents import LINE, PAPER
from tests.models.offline.workshop import Ask


@pytest.mark.parametrize(
    "question",
    [
        "what does README.md contain?",
        "show me `README.md`",
        "cat README.md",
        "what's in the readme?",
        'open "README.md"',
        "look at README.md",
        "README?",
    ],
)
async def test_shows_a_file_as_it_is(ask: Ask, question: str) -> None:
    reply = (await ask(question)).reply
    assert reply.startswith("`README.md` contains:\n\n````\n# Workshop\n\nA shop for lamps. Prices are in cents.")
    assert reply.endswith("from shop.prices import price_of\n```\n````")


async def test_shows_the_text_of_a_document(ask: Ask, workshop: Path) -> None:
    (workshop / "bridge.pdf").write_bytes(PAPER.data)
    reply = (await ask("what does bridge.pdf contain?")).reply
    assert reply.startswith(f"`bridge.pdf` contains:\n\n```\n[page 1]\n{LINE}\n")


async def test_file_nearest_to_the_root_is_shown_and_the_others_are_named(ask: Ask, workshop: Path) -> None:
    (workshop / "web/README.md").write_text("The page.")
    reply = (await ask("what's in the readme?")).reply
    assert reply.startswith("`README.md` contains:")
    assert reply.endswith("Others of that name:\n\n```\nweb/README.md\n```")


async def test_files_of_a_name_at_the_same_depth_are_named(ask: Ask, workshop: Path) -> None:
    for folder in ("web", "tools"):
        (workshop / folder / "notes.md").write_text("Notes.")
    reply = (await ask("what's in notes.md?")).reply
    assert reply == (
        "There is no `notes.md` here.\n\nThere are files of that name:\n\n```\ntools/notes.md\nweb/notes.md\n```"
    )


async def test_finds_the_file_by_its_name_alone(ask: Ask) -> None:
    assert "`src/shop/cart.py` contains:" in (await ask("what does cart.py contain?")).reply
    assert "`src/shop/cart.py`" not in (await ask("what does shop/prices.py contain?")).reply


@pytest.mark.parametrize("question", ["What does src contain?", "show me ./src", "what does the src folder contain?"])
async def test_lists_what_a_folder_contains(ask: Ask, workshop: Path, question: str) -> None:
    (workshop / "src/notes.txt").write_text("lamps")
    reply = (await ask(question)).reply
    assert reply.startswith("There are 4 files in `")
    assert "src/notes.txt\nsrc/shop/__init__.py\n" in reply


async def test_says_that_a_folder_is_empty(ask: Ask, workshop: Path) -> None:
    (workshop / "attic").mkdir()
    assert (await ask("What does attic contain?")).reply == "There are no files in `attic`."


async def test_shows_only_the_beginning_of_a_long_file(ask: Ask, workshop: Path) -> None:
    (workshop / "long.txt").write_text("".join(f"line {number}\n" for number in range(50_000)))
    reply = (await ask("show me long.txt")).reply
    assert "line 199\n```\n\nThat is its beginning: 200 lines." in reply
    assert len(reply) < 5_000


async def test_says_why_a_file_cannot_be_shown(ask: Ask, workshop: Path) -> None:
    (workshop / "lamp.bin").write_bytes(b"\0\1\2")
    assert (await ask("what does nowhere.txt contain?")).reply == "There is no `nowhere.txt` here."
    assert "not text" in (await ask("what does lamp.bin contain?")).reply
    assert "leads out of the workspace" in (await ask("show me ../../etc/passwd")).reply


async def test_says_of_a_picture_only_that_it_is_none_to_show(ask: Ask, workshop: Path) -> None:
    (workshop / "photo.bin").write_bytes(b"\0\1\2")
    reply = (await ask("show photo.bin")).reply
    assert "photo.bin is binary data (3 bytes)" in reply
    assert "files of that name" not in reply
