"""Text that the person has typed in an editor and not saved: calls see it, and it is never lost."""

from pathlib import Path
from typing import Any

import pytest
from tests.cli.in_editor import Connect, EditorWithBuffers, prompt
from tests.cli.model import Model, call

from denizen.messages import AssistantMessage

TYPED = 'print("hello")\nprint("typed")\n'


@pytest.fixture(autouse=True)
def structured_calls(home: Path, model: Model) -> None:
    with (home / "denizen.toml").open("a") as file:
        file.write('[agent]\nactions = "native"\n')


@pytest.fixture
def file(repo: Path) -> Path:
    return repo / "hello.py"


async def in_editor(connect: Connect, editor: EditorWithBuffers, repo: Path, *prompts: str, mode: str = "ask") -> None:
    async with connect(editor, buffers=True) as agent:
        session = (await agent.new_session(cwd=str(repo))).session_id
        await agent.set_session_mode(session_id=session, mode_id=mode)
        for text in prompts:
            await prompt(agent, session, text)


async def test_typed_text_is_seen_and_saved(connect: Connect, repo: Path, file: Path, model: Model) -> None:
    model.plays(call("view", path="hello.py"), "It says so.")
    await in_editor(connect, EditorWithBuffers({file: TYPED}), repo, "What does it say?")
    assert 'print("typed")' in model.told()
    assert file.read_text() == TYPED


async def test_text_typed_later_in_a_turn_is_seen(connect: Connect, repo: Path, file: Path, model: Model) -> None:
    model.plays(call("view", path="hello.py"), call("view", path="hello.py"), "Seen.")
    editor = EditorWithBuffers({file: TYPED})

    def type_on(update: Any) -> None:
        if getattr(update, "status", "") == "completed":
            editor.buffers[str(file)] = f"{TYPED}# and more\n"

    editor.on_update = type_on
    await in_editor(connect, editor, repo, "Look twice")
    assert "# and more" in model.told()


PATCH = '*** Begin Patch\n*** Update File: hello.py\n@@\n-print("typed")\n+print("edited")\n*** End Patch'
EDIT = call("edit", path="hello.py", old="typed", new="edited")


@pytest.mark.parametrize("edit", [EDIT, call("apply_patch", patch=PATCH)], ids=["edit", "apply_patch"])
async def test_an_edit_changes_typed_text_in_the_file_and_in_the_editor(
    edit: AssistantMessage, connect: Connect, repo: Path, file: Path, model: Model
) -> None:
    model.plays(edit, call("edit", path="hello.py", old="edited", new="edited twice"), "Done.")
    editor = EditorWithBuffers({file: TYPED})
    await in_editor(connect, editor, repo, "Edit it")
    assert file.read_text() == editor.buffers[str(file)] == TYPED.replace("typed", "edited twice")


async def test_undo_brings_typed_text_back(connect: Connect, repo: Path, file: Path, model: Model) -> None:
    model.plays(call("write", path="hello.py", content="new\n"), "Done.")
    await in_editor(connect, EditorWithBuffers({file: TYPED}), repo, "Write it", "/undo")
    assert file.read_text() == TYPED


async def test_a_preview_shows_the_edit_of_typed_text(
    connect: Connect, repo: Path, home: Path, file: Path, model: Model
) -> None:
    with (home / "denizen.toml").open("a") as settings:
        settings.write('[policy]\nrules = [{ tool = "apply_patch", decide = "ask" }]\n')
    model.plays(call("apply_patch", patch=PATCH), "Done.")
    editor = EditorWithBuffers({file: TYPED})
    await in_editor(connect, editor, repo, "Edit it")
    assert '+print("edited")' in editor.asked[0].content[0].content.text


async def test_a_buffer_that_is_behind_its_file_is_not_saved(
    connect: Connect, repo: Path, file: Path, model: Model
) -> None:
    model.plays(call("bash", command="echo new > hello.py"), call("view", path="hello.py"), "It is new.")
    editor = EditorWithBuffers({file: 'print("hello")\n'})
    await in_editor(connect, editor, repo, "Change it")
    assert "new" in model.told()
    assert file.read_text() == "new\n"
    assert editor.written == []


async def test_text_typed_during_an_edit_stays_in_the_editor(
    connect: Connect, repo: Path, file: Path, model: Model
) -> None:
    model.plays(call("edit", path="hello.py", old="hello", new="edited"), "Done.")
    editor = EditorWithBuffers({file: 'print("hello")\n'})

    def type_on(update: Any) -> None:
        if getattr(update, "status", "") == "completed":
            editor.buffers[str(file)] = TYPED

    editor.on_update = type_on
    await in_editor(connect, editor, repo, "Edit it")
    assert editor.buffers[str(file)] == TYPED
    assert file.read_text() == 'print("edited")\n'
    assert "You changed hello.py while it was edited" in editor.thoughts


@pytest.mark.parametrize("data", [b"\xefcaf", b"\xef\xbb\xbfone\n"], ids=["latin-1", "with a mark"])
async def test_a_file_in_another_encoding_is_left_alone(
    data: bytes, connect: Connect, repo: Path, file: Path, model: Model
) -> None:
    file.write_bytes(data)
    model.plays(call("view", path="hello.py"), "Seen.")
    editor = EditorWithBuffers({file: "as the editor shows it\n"})
    await in_editor(connect, editor, repo, "Look")
    assert editor.written == []


async def test_an_editor_that_only_changes_its_buffer_gets_the_file_written(
    connect: Connect, repo: Path, file: Path, model: Model
) -> None:
    model.plays(call("view", path="hello.py"), "Seen.")
    editor = EditorWithBuffers({file: TYPED})
    editor.saves = False
    await in_editor(connect, editor, repo, "Look")
    assert file.read_text() == TYPED


async def test_line_ends_of_the_editor_are_not_typed_text(
    connect: Connect, repo: Path, file: Path, model: Model
) -> None:
    file.write_bytes(b"one\r\ntwo\r\n")
    model.plays(call("view", path="hello.py"), "Read.")
    editor = EditorWithBuffers({file: "one\ntwo"})
    await in_editor(connect, editor, repo, "Read it")
    assert editor.written == []


async def test_nothing_is_saved_in_read_only_mode(connect: Connect, repo: Path, file: Path, model: Model) -> None:
    model.plays(call("view", path="hello.py"), "Read.")
    editor = EditorWithBuffers({file: TYPED})
    await in_editor(connect, editor, repo, "Read it", mode="read-only")
    assert editor.written == []
    assert file.read_text() == 'print("hello")\n'


async def test_files_outside_the_folder_are_not_saved(
    connect: Connect, repo: Path, tmp_path: Path, model: Model
) -> None:
    (tmp_path / "other.py").write_text("saved\n")
    model.plays(call("view", path="../other.py"), "Refused.")
    editor = EditorWithBuffers({tmp_path / "other.py": "typed\n"})
    await in_editor(connect, editor, repo, "Read it")
    assert editor.written == []
