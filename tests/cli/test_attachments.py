"""What goes with a message: piped input, `@path`, `--image FILE`."""

import base64
import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.model import Model
from tests.documents import LINE, PAPER

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg=="
)


@pytest.mark.parametrize("command", ["ask", "code"])
def test_a_file_has_the_name_by_which_tools_know_it(denizen: Run, model: Model, repo: Path, command: str) -> None:
    (repo / "src").mkdir()
    (repo / "src" / "app.py").write_text("print(1)\n")
    (repo.parent / "notes.txt").write_text("mine\n")
    model.plays("Fine.")
    denizen(command, "see @app.py, @../hello.py and @../../notes.txt", cwd=repo / "src")
    asked = json.dumps(model.requests[0]["messages"])
    names = ("src/app.py", "hello.py", f"{repo.parent}/notes.txt")
    assert [name for name in names if f'<file path=\\"{name}\\">' not in asked] == []


def test_piped_input_is_added_to_the_message(denizen: Run, model: Model) -> None:
    model.plays("Reviewed.")
    denizen("ask", "Review this:", piped="+ a line\n")
    assert "Review this:" in model.told()
    assert "<stdin>\n+ a line\n\n</stdin>" in model.told()


def test_piped_input_alone_is_the_message(denizen: Run, model: Model) -> None:
    model.plays("Hello.")
    assert denizen("ask", piped="Who are you?").status == 0
    assert model.told().startswith("Who are you?")


def test_piped_bytes_that_are_no_text_are_replaced(denizen: Run, model: Model) -> None:
    model.plays("Hello.")
    assert denizen("ask", "What is this?", piped=b"a\xffb").status == 0
    assert "a\N{REPLACEMENT CHARACTER}b" in model.told()


def test_a_piped_picture_is_shown(denizen: Run, model: Model) -> None:
    model.plays("A dot.")
    assert denizen("ask", "What is it?", piped=PNG).status == 0
    assert base64.b64encode(PNG).decode() in json.dumps(model.requests[0])


def test_piped_input_that_is_neither_text_nor_a_picture_is_refused(denizen: Run, model: Model) -> None:
    ran = denizen("ask", "What is it?", piped=b"a\0b")
    assert ran.status == 2
    assert "The piped input is neither text nor a picture" in ran.err
    assert model.requests == []


@pytest.mark.parametrize(
    ("words", "told"),
    [("see @nothing.py!", "@nothing.py"), ("see @src/app", "@src/app"), ("ask @ada.", ""), ("mail ada@b.py", "")],
    ids=["a suffix", "a folder", "a name", "an address"],
)
@pytest.mark.parametrize("command", ["ask", "chat"])
def test_a_mention_that_looks_like_a_path_and_is_none_is_reported(
    denizen: Run, model: Model, command: str, words: str, told: str
) -> None:
    model.plays("Fine.")
    err = denizen(command, *([words] if command == "ask" else []), piped="" if command == "ask" else words).err
    assert (f"{told} isn't a file" in err) == bool(told)


def test_piped_input_that_is_too_long_is_refused(denizen: Run, model: Model) -> None:
    ran = denizen("ask", "What is this?", piped="x" * 10_000_001)
    assert ran.status == 2
    assert "10 MB" in ran.err


@pytest.mark.parametrize("mention", ["@hello.py", "@hello.py?", '@"hello.py"', "(see @hello.py)", "@./hello.py,"])
def test_a_mentioned_file_is_attached(denizen: Run, model: Model, mention: str) -> None:
    model.plays("It prints.")
    denizen("ask", f"What does it do? {mention.replace('(see ', '( ')}")
    assert 'print("hello")' in model.told()


def test_a_file_that_is_mentioned_twice_is_attached_once(denizen: Run, model: Model) -> None:
    model.plays("It prints.")
    denizen("ask", "Is @hello.py like @hello.py?")
    assert model.told().count('print("hello")') == 1


@pytest.mark.parametrize("words", ["ask @ada about it", "mail ada@hello.py", "see @nothing.py", f"@{'x' * 300}", "@."])
def test_what_names_no_file_is_left_alone(denizen: Run, model: Model, words: str) -> None:
    model.plays("Fine.")
    assert denizen("ask", words).status == 0
    assert "<file" not in model.told()


def test_a_mentioned_picture_is_shown(denizen: Run, model: Model, repo: Path) -> None:
    (repo / "dot.png").write_bytes(PNG)
    model.plays("A dot.")
    denizen("ask", "What is in @dot.png?")
    assert base64.b64encode(PNG).decode() in json.dumps(model.requests[0])


def test_image_shows_a_picture_whatever_its_name(denizen: Run, model: Model, repo: Path) -> None:
    (repo / "dot").write_bytes(PNG)
    model.plays("A dot.")
    assert denizen("ask", "--image", "dot", "What is it?").status == 0
    assert "data:image/png;base64" in json.dumps(model.requests[0])


@pytest.mark.parametrize("command", ["ask", "chat"])
def test_a_document_is_attached(denizen: Run, model: Model, repo: Path, command: str) -> None:
    (repo / "bridge.pdf").write_bytes(PAPER.data)
    model.plays("Yes.")
    words = "is it open? @bridge.pdf"
    denizen(command, *([words] if command == "ask" else []), piped="" if command == "ask" else words)
    assert "[the text of bridge.pdf, 2 pages;" in json.dumps(model.requests[0])
    assert LINE in json.dumps(model.requests[0])


def test_a_piped_document_is_attached(denizen: Run, model: Model) -> None:
    model.plays("Yes.")
    assert denizen("ask", "Is it open?", piped=PAPER.data).status == 0
    assert "[the text of stdin.pdf, 2 pages;" in json.dumps(model.requests[0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--image", "hello.py", "hi"], "hello.py isn't a picture"),
        (["--image", "nothing.png", "hi"], "nothing.png"),
        (["what is @binary?"], "binary is neither text nor a picture"),
        (["what is @huge?"], "huge is longer than 10 MB"),
        (["what is @cut.pdf?"], "cut.pdf isn't a PDF document that can be read"),
    ],
    ids=["text as an image", "no file", "binary", "huge", "a damaged document"],
)
def test_files_that_cannot_be_used_are_refused(
    denizen: Run, model: Model, repo: Path, arguments: list[str], words: str
) -> None:
    (repo / "binary").write_bytes(b"\0\1\2")
    (repo / "cut.pdf").write_bytes(PAPER.data[:300])
    with (repo / "huge").open("wb") as file:
        file.truncate(10_000_001)
    ran = denizen("ask", *arguments)
    assert ran.status == 2
    assert words in ran.err
    assert model.requests == []
