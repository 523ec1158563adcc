"""The offline model answers questions about a real repository through the real engine and its real tools."""

import shutil
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from denizen import RunResult, run_agent
from denizen.config import Config
from denizen.config.settings import AgentSettings
from denizen.events import Finished, LlmStream, TextDelta, ToolStart
from denizen.messages import Message, Text, ToolResult, UserMessage
from denizen.models.offline import OfflineModel
from denizen.ports import ModelRequest, Schema

Ask = Callable[..., Awaitable[RunResult]]
WORKSHOP = Path(__file__).parent.parent / "data/offline/workshop"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with sources in five languages, and two commits."""
    folder = tmp_path_factory.mktemp("original") / "workshop"
    shutil.copytree(WORKSHOP, folder)
    _git(folder, "init", "--quiet", "--initial-branch=main")
    _commit(folder, "Open the shop")
    (folder / "web/app.ts").write_text((folder / "web/app.ts").read_text() + "// baskets\n")
    _commit(folder, "Explain baskets")
    return folder


@pytest.fixture
def workshop(original: Path, tmp_path: Path) -> Path:
    """A copy of it, to do with as a test likes."""
    return shutil.copytree(original, tmp_path / "workshop")


@pytest.fixture
def ask(workshop: Path, tmp_path: Path) -> Ask:
    home = tmp_path / "home"

    async def run(question: str, *, settings: Mapping[str, Any] | None = None, **options: Any) -> RunResult:
        own = AgentSettings(workspace_dir=home / "own", **(settings or {}))
        config = Config(model="offline", home=home, workspace=workshop, agent=own)
        return await run_agent(question, config=config, **options)

    return run


def _commit(folder: Path, message: str) -> None:
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", message)


def _git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


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
    assert result.reply.startswith("This project is mainly written in Python: 3 of its 7 source files. The others are")
    assert all(f"{language} (1)" in result.reply for language in ("TypeScript", "Go", "C", "Rust", "Markdown"))
    assert [message.name for message in result.messages if isinstance(message, ToolResult)] == ["find"]


@pytest.mark.parametrize(
    ("question", "said"),
    [("is this a Rust project?", "In part."), ("is it Python", "Yes."), ("Is this written in PHP?", "No.")],
)
async def test_says_whether_it_is_written_in_a_language(ask: Ask, question: str, said: str) -> None:
    assert (await ask(question)).reply.startswith(f"{said} This project is mainly written in Python: 3 of its 7")


async def test_names_all_that_come_first(ask: Ask, workshop: Path) -> None:
    for folder in ("web", "tools"):
        shutil.rmtree(workshop / folder)
    for number in range(3):
        (workshop / f"part{number}.rb").touch()
    reply = (await ask("what language is this?")).reply
    assert reply.startswith("This project is written in Python and Ruby: 3 of its 6 source files each.")


async def test_language_of_a_single_source_language(ask: Ask, workshop: Path) -> None:
    for folder in ("web", "tools"):
        shutil.rmtree(workshop / folder)
    assert "written in Python: all of its 3 source files." in (await ask("what language is this?")).reply


async def test_queries_of_tree_sitter_are_not_scheme(ask: Ask, workshop: Path) -> None:
    for path in ("queries/python.scm", "src/shop/queries/go.scm"):
        (workshop / path).parent.mkdir(exist_ok=True)
        (workshop / path).touch()
    reply = (await ask("what language is this?")).reply
    assert "3 of its 7 source files" in reply
    assert "Scheme" not in reply


async def test_says_that_there_is_no_source_code(ask: Ask, workshop: Path) -> None:
    for folder in ("web", "tools", "src"):
        shutil.rmtree(workshop / folder)
    assert (await ask("what language is this?")).reply.startswith("I find no source code here, only")


async def test_counts_a_workspace_of_many_pages(ask: Ask, workshop: Path) -> None:
    for number in range(700):
        (workshop / f"src/part{number}.py").touch()
    assert "703 of its 707 source files" in (await ask("what language is this?")).reply


async def test_says_that_it_sees_only_a_part(ask: Ask) -> None:
    little = {"max_tool_result_chars": 60}
    reply = (await ask("list the files", settings=little)).reply
    assert reply.endswith("That is what I see in a part of the files; there are more.")
    assert "That is its beginning" in (await ask("show me README.md", settings=little)).reply
    assert "is too long for me" in (await ask("list the dependencies", settings=little)).reply


@pytest.mark.parametrize("folder", ["vendor", "src/third_party/lamp", "tests/data", "tests/shop/data/a", "fixtures"])
async def test_what_others_wrote_or_tests_read_is_not_the_projects(ask: Ask, workshop: Path, folder: str) -> None:
    (workshop / "pyproject.toml").unlink()
    (workshop / folder).mkdir(parents=True)
    shutil.copy(workshop / "src/shop/cart.py", workshop / folder / "cart.py")
    shutil.copy(workshop / "web/package.json", workshop / folder / "package.json")
    reply = (await ask("what language is this?")).reply
    assert "3 of its 7 source files" in reply
    assert " Not counted: 2 files of test data or by others, in `" in reply
    assert folder not in (await ask("list the dependencies")).reply


async def test_folders_called_data_are_the_projects_unless_tests_read_them(ask: Ask, workshop: Path) -> None:
    (workshop / "data").mkdir()
    shutil.copy(workshop / "src/shop/cart.py", workshop / "data/cart.py")
    assert "4 of its 8 source files" in (await ask("what language is this?")).reply


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


async def test_many_files_below_one_folder_are_told_by_the_folders_in_it(ask: Ask, workshop: Path) -> None:
    for number in range(80):
        (workshop / f"src/shop/part{number}.py").touch()
    (workshop / "src/run.py").touch()
    reply = (await ask("which python files are there?")).reply
    assert reply.startswith("There are 84 python files:")
    assert "src/run.py\nsrc/shop/  83 files" in reply


async def test_an_empty_folder_is_said_to_be_empty(ask: Ask, workshop: Path) -> None:
    shutil.rmtree(workshop)
    _git(workshop.parent, "init", "--quiet", str(workshop))
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
        file.write("\ntest: build\n\tpytest\n")
    result = await ask(question)
    assert result.reply == (
        "The tests are run by:\n\n- `make test`, as `Makefile` tells\n- `python -m pytest`, as `pyproject.toml` tells"
    )
    assert (await ask("run the tests")).reply == f"I only look, and run nothing. {result.reply}"


async def test_says_that_nothing_tells_how_tests_are_run(ask: Ask, workshop: Path) -> None:
    for path in ("pyproject.toml", "tools", "Makefile"):
        shutil.rmtree(workshop / path) if path == "tools" else (workshop / path).unlink()
    (workshop / "package.json").write_text('{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}')
    assert (await ask("how do I run the tests?")).reply.startswith("I find nothing here that says")
    (workshop / "test_cart.py").touch()
    assert "`python -m pytest`" in (await ask("how do I run the tests?")).reply


async def test_what_may_be_a_file_is_looked_for_as_one_too(ask: Ask) -> None:
    reply = (await ask("where is the cart?")).reply
    assert reply.startswith("`cart` is the name of:\n\n```\nsrc/shop/cart.py\n```")


@pytest.mark.parametrize(
    "question",
    ["list the dependencies", "What does this project depend on?", "which libraries does it use?", "show requirements"],
)
async def test_lists_what_every_manifest_declares(ask: Ask, workshop: Path, question: str) -> None:
    (workshop / "pyproject.toml").rename(workshop / "src/pyproject.toml")
    reply = (await ask(question)).reply
    for told in (
        "`src/pyproject.toml` declares:\n- 2 dependencies: `httpx>=0.28`, `rich`",
        "- 1 dependency (optional: postgres): `psycopg>=3`",
        "- 1 dependency (group: dev): `pytest>=9`",
        "`web/package.json` declares:\n- 1 dependency: `react ^19.0.0`",
        "- 2 dependencies (dev): `vite ^8.0.0`, `typescript ~6.0.0`",
        "- 1 dependency: `github.com/spf13/cobra v1.9.1`\n- 1 dependency (indirect): `golang.org/x/text v0.30.0`",
        "- 2 dependencies: `serde 1.0`, `log 0.4`",
        '- 2 dependencies: `flask==3.1`, `requests[socks]>=2 ; python_version < "3.13"`',
    ):
        assert told in reply


async def test_manifests_at_the_root_come_before_those_below(ask: Ask) -> None:
    reply = (await ask("list the dependencies")).reply
    assert reply.count(" declares:") == 1
    assert reply.startswith("`pyproject.toml` declares:")
    assert reply.endswith(
        "I didn't read 4 other manifests below: "
        "docs/requirements.txt, tools/Cargo.toml, tools/go.mod, web/package.json."
    )


async def test_says_which_manifest_it_cannot_understand(ask: Ask, workshop: Path) -> None:
    (workshop / "pyproject.toml").unlink()
    (workshop / "src/pyproject.toml").write_text("[project\n")
    (workshop / "web/package.json").write_text("[" * 100_000)
    reply = (await ask("list the dependencies")).reply
    assert "`src/pyproject.toml` can't be understood: " in reply
    assert "`web/package.json` can't be" in reply
    assert "serde 1.0" in reply


async def test_says_that_nothing_declares_dependencies(ask: Ask, workshop: Path) -> None:
    for name in ("pyproject.toml", "web/package.json", "tools/go.mod", "tools/Cargo.toml", "docs/requirements.txt"):
        (workshop / name).unlink()
    assert (await ask("list the dependencies")).reply.startswith("I find no file here that declares dependencies")


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
    assert reply.endswith("contains:\n\n```\nshop/\nnotes.txt  5 bytes\n```")


async def test_says_that_a_folder_is_empty(ask: Ask, workshop: Path) -> None:
    (workshop / "attic").mkdir()
    assert (await ask("What does attic contain?")).reply == "There is nothing to see in `attic`."


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


@pytest.mark.parametrize(
    "question",
    ["Where can I find checkout?", "where does checkout live", "locate checkout", "in which file is checkout?"],
)
async def test_finds_where_something_is(ask: Ask, question: str) -> None:
    assert "web/app.ts:5: export function checkout" in (await ask(question)).reply


async def test_method_without_a_keyword_is_found_by_its_name_behind_its_class(ask: Ask, workshop: Path) -> None:
    (workshop / "web/till.ts").write_text("class Till {\n  async weigh(a: number): number { return a }\n}\n")
    assert "web/till.ts:2: async weigh(a: number)" in (await ask("where is Till.weigh")).reply
    assert (await ask("where is Till.nothing")).reply == "There is no file called `Till.nothing` here."


@pytest.mark.parametrize(
    "question", ["any TODOs?", "find all todos", "show me the TODOs in src", "are there todos here"]
)
async def test_finds_what_is_to_be_done(ask: Ask, workshop: Path, question: str) -> None:
    (workshop / "src/later.py").write_text("# TODO: weigh\n")
    assert "src/later.py:1: # TODO: weigh" in (await ask(question)).reply


@pytest.mark.parametrize(
    "question",
    [
        'find the text "LAMP_CENTS"',
        "does the code mention LAMP_CENTS?",
        "where does it say LAMP_CENTS",
        "occurrences of LAMP_CENTS",
        "search for LAMP_CENTS",
        "grep LAMP_CENTS",
        "where is LAMP_CENTS used?",
        "who uses `LAMP_CENTS`?",
    ],
)
async def test_finds_a_text(ask: Ask, question: str) -> None:
    reply = (await ask(question)).reply
    assert reply.startswith("`LAMP_CENTS` is in 4 places in 2 files:")
    assert "src/shop/cart.py:5: LIMIT: int = LAMP_CENTS * 100" in reply


async def test_finds_a_text_in_a_place_of_several_words_and_signs(ask: Ask) -> None:
    assert "(basket: Basket)` is in 2 places in `web/`" in (await ask('search for "(basket: Basket)" in web/')).reply
    assert (await ask("search for 'sum(prices'")).reply.startswith("`sum(prices` is in 1 place:")


async def test_finds_a_text_in_other_capitals_and_says_so(ask: Ask) -> None:
    assert (await ask("search for WORKSHOP")).reply.startswith(
        "`WORKSHOP` is in 2 places in 2 files, with other capitals:"
    )


async def test_says_that_a_text_is_nowhere(ask: Ask) -> None:
    assert (await ask('find the text "zeppelin"')).reply == "`zeppelin` is nowhere in the files that I can search."


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("where is PriceList defined?", "src/shop/prices.py:6: class PriceList:"),
        ("where's price_of defined", "src/shop/prices.py:9: def price_of(self, article: str) -> int:"),
        ("Where is `PriceList.price_of` implemented?", "src/shop/prices.py:9: def price_of"),
        ("find the definition of refresh", "src/shop/prices.py:13: async def refresh"),
        ("which file defines LAMP_CENTS?", "src/shop/prices.py:3: LAMP_CENTS = 1250"),
        ("where is the constant LIMIT defined", "src/shop/cart.py:5: LIMIT: int = LAMP_CENTS * 100"),
        ("where is renderBasket defined", "web/app.ts:3: export const renderBasket"),
        ("where is the interface Basket?", "web/app.ts:1: export interface Basket"),
        ("where is checkout()?", "web/app.ts:5: export function checkout"),
        ("where is Weigh defined?", "tools/scale.go:7: func (s *Scale) Weigh() int"),
        ("where is ring_bell declared?", "tools/bell.c:4: static int ring_bell(int times)"),
        ("where is LOUD defined", "tools/bell.c:2: #define LOUD 3"),
        ("where is the trait Press", "tools/press.rs:1: pub trait Press"),
        ("where is squeeze defined?", "tools/press.rs:1: pub trait Press { fn squeeze"),
        ("where is ship defined?", "Makefile:1: ship: build"),
        ("Where's the PriceList class?", "src/shop/prices.py:6: class PriceList:"),
        ("renderBasket definition", "web/app.ts:3: export const renderBasket"),
    ],
)
async def test_finds_definitions_in_many_languages(ask: Ask, question: str, place: str) -> None:
    reply = (await ask(question)).reply
    assert " is defined in " in reply.partition("\n")[0]
    assert place in reply


async def test_one_search_finds_a_definition(ask: Ask) -> None:
    result = await ask("where is LIMIT defined?")
    assert [message.name for message in result.messages if isinstance(message, ToolResult)] == ["grep"]


async def test_finds_the_definition_of_a_name_that_is_on_too_many_lines_to_show(ask: Ask, workshop: Path) -> None:
    (workshop / "a.py").write_text("lamp += 1\n" * 5_000)
    (workshop / "z.py").write_text("def lamp(): ...\n")
    assert "z.py:1: def lamp(): ..." in (await ask("where is lamp defined?")).reply


async def test_parts_of_longer_names_are_not_the_name(ask: Ask, workshop: Path) -> None:
    (workshop / "a.py").write_text("class PriceListing: ...\nclass MyPriceList: ...\n")
    assert "in 1 place:" in (await ask("where is PriceList defined?")).reply


async def test_says_where_a_name_is_mentioned_that_nothing_defines(ask: Ask) -> None:
    reply = (await ask("where is printf defined?")).reply
    assert reply.startswith("I find no line that defines `printf`, but it is mentioned in 1 place:")
    assert (await ask("where is zeppelin defined?")).reply.startswith("I find `zeppelin` nowhere")


@pytest.mark.parametrize(
    "question", ["what changed recently?", "What's new?", "the git log", "changes since last week"]
)
async def test_tells_the_latest_commits_and_what_is_uncommitted(ask: Ask, workshop: Path, question: str) -> None:
    (workshop / "Makefile").write_text("ship:\n")
    reply = (await ask(question)).reply
    assert reply.startswith("The latest 2 commits, newest first:")
    assert reply.index("Ada: Explain baskets") < reply.index("Ada: Open the shop")
    assert " M Makefile" in reply


async def test_tells_what_changed_in_one_file(ask: Ask) -> None:
    reply = (await ask("what changed in Makefile?")).reply
    assert reply.startswith("The only commit of `Makefile`")
    assert "baskets" not in reply
    assert "baskets" in (await ask("show the last 1 commits")).reply


async def test_tells_what_is_not_committed(ask: Ask, workshop: Path) -> None:
    assert (await ask("git status")).reply == "Nothing is uncommitted (branch main)."
    (workshop / "Makefile").write_text("ship:\n")
    assert " M Makefile" in (await ask("are there uncommitted changes?")).reply


async def test_says_of_a_picture_only_that_it_is_none_to_show(ask: Ask, workshop: Path) -> None:
    (workshop / "photo.bin").write_bytes(b"\0\1\2")
    reply = (await ask("show photo.bin")).reply
    assert "photo.bin is binary data (3 bytes)" in reply
    assert "files of that name" not in reply


async def test_says_that_there_is_no_repository(ask: Ask, workshop: Path) -> None:
    shutil.rmtree(workshop / ".git")
    for question in ("what changed recently?", "git status"):
        assert (await ask(question)).reply == (
            "I can only tell what changed from git, and this folder is not the root of a git repository."
        )


async def test_remembers_and_recalls(ask: Ask) -> None:
    assert (await ask("What do you remember?")).reply == "I remember nothing."
    assert (await ask("Please remember that it's the 3rd door, not the 2nd.")).reply.startswith(
        "I'll remember: it's the 3rd door, not the 2nd."
    )
    await ask("remember: tea at five")
    assert (await ask("what do you remember about windows? ")).reply.startswith("I remember nothing about windows")
    assert "it's the 3rd door" in (await ask("do you remember the door?")).reply
    for question in ("what do you remember?", "what did I ask you to remember"):
        assert "tea at five" in (await ask(question)).reply


@pytest.mark.parametrize(
    "question",
    ["What is the meaning of life?", "write a poem about lamps", "are you a language model?", "", "?!"],
)
async def test_says_plainly_what_it_cannot_do_and_what_to_set_up(ask: Ask, question: str) -> None:
    result = await ask(question)
    assert result.reply.startswith("I'm Denizen's offline model: rules, not a language model, so I can't answer that.")
    assert "ANTHROPIC_API_KEY" in result.reply
    assert "local model server" in result.reply
    assert result.iterations == 1


@pytest.mark.parametrize("greeting", ["hi", "Hello!", "Hey there", "good morning", "hello denizen"])
async def test_greets_and_says_what_can_be_asked(ask: Ask, greeting: str) -> None:
    reply = (await ask(greeting)).reply
    assert reply.startswith("Hello! I'm Denizen's offline model: rules, not a language model.")
    assert "- What are the dependencies?" in reply


@pytest.mark.parametrize("question", ["What can you do?", "who are you?", "help", "what can I ask you?"])
async def test_says_what_can_be_asked(ask: Ask, question: str) -> None:
    reply = (await ask(question)).reply
    assert reply.startswith("I'm Denizen's offline model: rules, not a language model. I understand questions like")


@pytest.mark.parametrize("question", ["What does this project do?", "what is this repo about?", "explain this project"])
async def test_points_to_the_readme_for_what_a_project_is_for(ask: Ask, question: str) -> None:
    reply = (await ask(question)).reply
    assert reply.startswith("What a project is for I can't tell; its README may:")
    assert "- What are the dependencies?" in reply


@pytest.mark.parametrize(
    "question",
    [
        "What language is this project?",
        "List the files",
        "What does src contain?",
        "What does the README contain?",
        "What are the dependencies?",
        "Where is price_of defined?",
        "What changed recently?",
        "What do you remember?",
    ],
)
async def test_understands_what_it_says_can_be_asked(ask: Ask, question: str) -> None:
    assert any(isinstance(message, ToolResult) for message in (await ask(question)).messages)


async def test_costs_nothing_and_counts_no_tokens(ask: Ask) -> None:
    usage = (await ask("list the files")).usage
    assert (usage.cost_usd, usage.input, usage.output) == (0.0, None, None)


async def test_streams_small_pieces_that_are_the_reply(ask: Ask) -> None:
    events: list[Any] = []
    result = await ask("what language is this?", on_event=events.append)
    deltas = [each.event.delta for each in events if isinstance(each, LlmStream) and isinstance(each.event, TextDelta)]
    assert "".join(deltas) == result.reply
    assert max(map(len, deltas)) < 30
    assert [each.tool_name for each in events if isinstance(each, ToolStart)] == ["find"]


async def test_names_the_tool_that_is_missing(ask: Ask) -> None:
    result = await ask("list the files", tools=[])
    assert result.reply == "For that I need the tool `find`, which isn't there in this session."


async def test_only_the_last_message_counts(ask: Ask) -> None:
    await ask("where is PriceList defined?", session_key="shop")
    assert (await ask("what language is this?", session_key="shop")).reply.startswith("This project is mainly")


async def test_says_that_it_cannot_answer_in_a_form(ask: Ask) -> None:
    request = ModelRequest([UserMessage([Text("list the files")])], output_schema={"type": "object"})
    [event] = [event async for event in OfflineModel().stream(request)]
    assert isinstance(event, Finished)
    assert "can't answer in the form" in event.message.text


async def test_same_messages_bring_the_same_calls() -> None:
    messages: list[Message] = [UserMessage([Text("list the files")])]
    request = ModelRequest(messages, tools=[Schema("find", "", {})])
    first, second = [[event async for event in OfflineModel().stream(request)] for _ in range(2)]
    assert first == second
    messages += [*messages, *messages]
    [later] = [event async for event in OfflineModel().stream(request)]
    assert isinstance(later, Finished)
    assert later != first[0]
