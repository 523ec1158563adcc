"""The offline model knows what files a project has, how it is tested, and what it depends on."""

import shutil
from pathlib import Path

import pytest
from tests.models.offline.workshop import Ask, git


@pytest.mark.parametrize(
    "question",
    ["list the files", "What files are there?", "show me the project structure", "list the directory", "files", "ls"],
)
async def test_lists_the_files(ask: Ask, question: str) -> None:
    reply = (await ask(question)).reply
    assert reply.startswith("There are 15 files:")
    assert "src/shop/prices.py" in reply


@pytest.mark.parametrize(
    ("question", "heading"),
    [
        ("list the python files", "There are 3 python files:"),
        ("how many TypeScript files are there?", "There is 1 TypeScript file:"),
        ("list the files in tools", "There are 5 files in `tools`:"),
        ("list the tools folder", "There are 5 files in `tools`:"),
        ("ls src/shop", "There are 3 files in `src/shop`:"),
        ("list the require files", "There is 1 file with `require` in the name:"),
        ("list the rust files", "There is 1 rust file:"),
        ("list the Haskell files", "There are no Haskell files here."),
    ],
)
async def test_lists_some_of_the_files(ask: Ask, question: str, heading: str) -> None:
    assert (await ask(question)).reply.startswith(heading)


async def test_lists_many_files_by_folder(ask: Ask, workshop: Path) -> None:
    for number in range(80):
        (workshop / f"src/part{number}.py").touch()
    reply = (await ask("list the files")).reply
    assert reply.startswith("There are 95 files:")
    assert "src/  83 files" in reply
    assert "Makefile" in reply


async def test_many_files_below_one_folder_are_listed_by_its_folders(ask: Ask, workshop: Path) -> None:
    for number in range(80):
        (workshop / f"src/shop/part{number}.py").touch()
    (workshop / "src/run.py").touch()
    reply = (await ask("which python files are there?")).reply
    assert reply.startswith("There are 84 python files:")
    assert "src/run.py\nsrc/shop/  83 files" in reply


async def test_says_that_the_workspace_is_empty(ask: Ask, workshop: Path) -> None:
    shutil.rmtree(workshop)
    git(workshop.parent, "init", "--quiet", str(workshop))
    for question in ("what language is this?", "list the files"):
        assert (await ask(question)).reply == "There are no files here."
    assert (await ask("what changed recently?")).reply == "There are no commits here yet."


@pytest.mark.parametrize(
    "question", ["which tests are there?", "what tests are there", "where are the tests?", "list the unit tests"]
)
async def test_files_of_tests_are_known_by_their_names(ask: Ask, workshop: Path, question: str) -> None:
    for path in (
        "test_cart.py",
        "web/app.test.ts",
        "tools/scale_test.go",
        "node_modules/x/test_theirs.py",
        "contest.py",
    ):
        (workshop / path).parent.mkdir(exist_ok=True, parents=True)
        (workshop / path).touch()
    reply = (await ask(question)).reply
    assert reply == "There are 3 test files:\n\n```\ntest_cart.py\ntools/scale_test.go\nweb/app.test.ts\n```"


async def test_says_that_there_are_no_tests(ask: Ask) -> None:
    assert (await ask("which tests are in src?")).reply == "There are no test files in `src`."


@pytest.mark.parametrize("question", ["how do I run the tests?", "How can I test this?", "what command runs the tests"])
async def test_what_runs_the_tests_is_read_in_the_projects_own_files(ask: Ask, workshop: Path, question: str) -> None:
    with (workshop / "Makefile").open("a") as file:
        file.write("\ntest: build\n\tpytest\ncheck:\n\truff check\n")
    result = await ask(question)
    assert result.reply == (
        "The tests are run by:\n\n- `make test` (from `Makefile`)\n- `python -m pytest` (from `pyproject.toml`)"
    )
    assert (await ask("run the tests")).reply == f"I only look, and run nothing. {result.reply}"


async def test_says_that_it_finds_no_test_command(ask: Ask, workshop: Path) -> None:
    for path in ("pyproject.toml", "tools", "Makefile"):
        shutil.rmtree(workshop / path) if path == "tools" else (workshop / path).unlink()
    (workshop / "package.json").write_text('{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}')
    assert (await ask("how do I run the tests?")).reply.startswith("I find nothing here that says")


async def test_what_may_be_a_file_is_looked_for_as_one_too(ask: Ask) -> None:
    reply = (await ask("where is the cart?")).reply
    assert reply.startswith("`cart` is the name of:\n\n```\nsrc/shop/cart.py\n```")


@pytest.mark.parametrize(
    "question",
    ["list the dependencies", "What does this project depend on?", "which libraries does it use?", "show requirements"],
)
async def test_shows_the_manifests_at_the_root(ask: Ask, workshop: Path, question: str) -> None:
    reply = (await ask(question)).reply
    assert reply.startswith("`pyproject.toml` contains:\n\n```\n[project]\n")
    assert 'dependencies = ["httpx>=0.28", "rich"]' in reply
    assert reply.endswith("There are other manifests, which I didn't read.")


async def test_shows_all_manifests_that_are_nearest_to_the_root(ask: Ask, workshop: Path) -> None:
    (workshop / "pyproject.toml").unlink()
    reply = (await ask("list the dependencies")).reply
    for path in ("docs/requirements.txt", "tools/Cargo.toml", "tools/go.mod", "web/package.json"):
        assert f"`{path}` contains:" in reply


async def test_says_that_nothing_declares_dependencies(ask: Ask, workshop: Path) -> None:
    for name in ("pyproject.toml", "web/package.json", "tools/go.mod", "tools/Cargo.toml", "docs/requirements.txt"):
        (workshop / name).unlink()
    assert (await ask("list the dependencies")).reply.startswith("I find no file here that declares dependencies")
