"""Anthropic's memory tool: files in a folder that no path leads out of."""

import stat
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from denizen import Agent, Config
from denizen.config.settings import AuthProfileSettings, ModelSettings, ProviderSettings
from denizen.errors import ToolRefused
from denizen.messages import AssistantMessage, ToolCall, ToolResult
from denizen.ports import Tool, ToolContext, Traits
from denizen.testing import LoopbackAnthropic
from denizen.tools.files.changes import LoadedFile, load
from denizen.tools.files.workspace import Workspace
from denizen.tools.memory_folder import memory_folder_tool

Call = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "memories"


@pytest.fixture
def memory(folder: Path) -> Tool:
    return memory_folder_tool(folder)


async def test_a_file_is_kept_seen_changed_renamed_and_deleted(memory: Tool, folder: Path, call: Call) -> None:
    path = "/memories/people/ada.md"
    made = await call(memory, command="create", path=path, file_text="Ada\nlikes tea\n")
    assert made.text == f"File created successfully at: {path}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    listed = (await call(memory, command="view", path="/memories")).text
    assert listed.splitlines()[1:] == ["folder\t/memories/people/", "14 bytes\t/memories/people/ada.md"]
    assert "     2\tlikes tea" in (await call(memory, command="view", path=path)).text
    some = await call(memory, command="view", path=path, view_range=[2, -1])
    assert some.text.splitlines()[1:] == ["     2\tlikes tea", "     3\t"]
    edited = await call(memory, command="str_replace", path=path, old_str="tea", new_str="coffee")
    assert "     2\tlikes coffee" in edited.text
    await call(memory, command="insert", path=path, insert_line=1, insert_text="lives in Leipzig\n")
    assert (folder / "people/ada.md").read_text() == "Ada\nlives in Leipzig\nlikes coffee\n"
    await call(memory, command="rename", old_path=path, new_path="/memories/done/ada.md")
    assert (folder / "done/ada.md").exists()
    await call(memory, command="delete", path="/memories/done/ada.md")
    await call(memory, command="delete", path="/memories/people")
    assert [*folder.rglob("*.md")] == []
    assert not (folder / "people").exists()


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"command": "create", "path": "/memories/a", "file_text": "x"}, "/memories/a already exists"),
        ({"command": "create", "path": "/memories/new"}, "create needs file_text"),
        ({"command": "view", "path": "/memories/none"}, "none doesn't exist"),
        ({"command": "view", "path": "/memories/a", "view_range": [7, 9]}, "has 4 lines; there is none from 7"),
        ({"command": "str_replace", "path": "/memories/a", "old_str": "two"}, "old_str isn't in /memories/a"),
        ({"command": "str_replace", "path": "/memories/a", "old_str": "one"}, "several times, at lines 1, 3"),
        ({"command": "insert", "path": "/memories/a", "insert_line": 4, "insert_text": "x"}, "from 0 to 3"),
        ({"command": "insert", "path": "/memories/a", "insert_text": "x"}, "insert needs insert_line"),
        ({"command": "delete", "path": "/memories/none"}, "none doesn't exist"),
        ({"command": "delete", "path": "/memories/"}, "/memories itself stays"),
        ({"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"}, "/memories/b already exists"),
        ({"command": "rename", "old_path": "/memories/c", "new_path": "/memories/d"}, "No such file"),
        ({"command": "rename", "old_path": "/memories", "new_path": "/memories/d"}, "/memories itself stays"),
    ],
)
async def test_what_cannot_be_done_is_refused(
    memory: Tool, folder: Path, call: Call, args: dict[str, Any], why: str
) -> None:
    for name in ("a", "b"):
        await call(memory, command="create", path=f"/memories/{name}", file_text="one\n\none\n")
    with pytest.raises(ToolRefused, match=why):
        await call(memory, **args)
    assert (folder / "a").read_text() == "one\n\none\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"one\ftwo\xe2\x80\xa8three\nfour\n", b"one\ftwo\xe2\x80\xa8three\nx\ny\nfour\n"),
        (b"one\r\ntwo\r\n", b"one\r\nx\r\ny\r\ntwo\r\n"),
        (b"one", b"one\nx\ny\n"),
    ],
    ids=["form feed", "CRLF", "no line end"],
)
async def test_insert_counts_lines_as_view_does_and_leaves_the_others_as_they_are(
    memory: Tool, folder: Path, call: Call, before: bytes, after: bytes
) -> None:
    folder.mkdir(parents=True)
    (folder / "a").write_bytes(before)
    await call(memory, command="insert", path="/memories/a", insert_line=1, insert_text="x\ny\n")
    assert (folder / "a").read_bytes() == after


@pytest.mark.parametrize(
    "args", [{"command": "str_replace", "old_str": "tea"}, {"command": "insert", "insert_line": 1, "insert_text": "x"}]
)
async def test_what_another_session_changes_meanwhile_is_not_overwritten(
    memory: Tool, folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch, args: dict[str, Any]
) -> None:
    def load_before_the_other_writes(workspace: Workspace, path: str) -> LoadedFile:
        file = load(workspace, path)
        if file.text == "Ada likes tea\n":
            (folder / "a").write_text("Ada likes tea and coffee\n")
        return file

    await call(memory, command="create", path="/memories/a", file_text="Ada likes tea\n")
    monkeypatch.setattr("denizen.tools.memory_folder.load", load_before_the_other_writes)
    with pytest.raises(ToolRefused, match="changed by somebody else meanwhile"):
        await call(memory, path="/memories/a", **args)
    assert (folder / "a").read_text() == "Ada likes tea and coffee\n"


OUTSIDE = [
    "/memories/../secret",
    "/memories/people/../../secret",
    "/memories/./../secret",
    "/memories/link/secret",
    "/memories/direct",
    "/memories/dangling",
    "/memories-of-others/secret",
    "/memories../secret",
    "memories/secret",
    "../secret",
    "/etc/passwd",
    "//memories/secret",
    "/memories/.untrusted",
    "/memories/a\0b",
    "",
]


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("command", ["view", "create", "str_replace", "insert", "delete", "rename", "rename to"])
async def test_no_path_leads_out_of_the_folder(memory: Tool, folder: Path, call: Call, path: str, command: str) -> None:
    await call(memory, command="create", path="/memories/people/a", file_text="x")
    (folder.parent / "secret").write_text("the secret")
    (folder / "link").symlink_to(folder.parent)
    (folder / "direct").symlink_to(folder.parent / "secret")
    (folder / "dangling").symlink_to(folder.parent / "new")
    args: dict[str, Any] = {"command": command.partition(" ")[0], "path": path, "file_text": "x", "old_str": "secret"}
    args |= {"insert_line": 0, "insert_text": "x", "old_path": path, "new_path": "/memories/people/b"}
    if command == "rename to":
        args |= {"old_path": "/memories/people/a", "new_path": path}
    before = {each: each.lstat().st_mtime_ns for each in folder.parent.iterdir() if each != folder}
    with pytest.raises(ToolRefused) as why:
        await call(memory, **args)
    assert "the secret" not in str(why.value)
    assert {each: each.lstat().st_mtime_ns for each in folder.parent.iterdir() if each != folder} == before
    assert (folder.parent / "secret").read_text() == "the secret"
    assert not (folder.parent / "new").exists()


async def test_a_percent_sign_is_a_letter_like_any_other(memory: Tool, folder: Path, call: Call) -> None:
    await call(memory, command="create", path="/memories/%2e%2e%2fsecret", file_text="x")
    assert [each.name for each in folder.iterdir()] == ["%2e%2e%2fsecret"]


async def test_what_was_kept_in_sight_of_others_text_stays_untrusted(
    memory: Tool, call: Call, turn: ToolContext
) -> None:
    kept = await call(memory, command="create", path="/memories/a", file_text="x")
    assert kept.details is None
    in_sight = replace(turn, in_sight=Traits.UNTRUSTED)
    await memory.run({"command": "create", "path": "/memories/b", "file_text": "y"}, in_sight)
    seen = await call(memory, command="view", path="/memories/b")
    assert seen.details == {"untrusted": True}
    assert ".untrusted" not in (await call(memory, command="view", path="/memories")).text
    assert Traits.PRIVATE in memory.traits


async def test_a_model_of_anthropics_is_sent_its_own_definition_and_its_calls_are_run(
    loopback_anthropic: LoopbackAnthropic, tmp_path: Path, folder: Path
) -> None:
    definition, name = {"type": "memory_20250818", "name": "memory"}, "anthropic:claude-sonnet-4-5"
    key = AuthProfileSettings(id="me", api_key="key-0123456789")
    config = Config(
        model=name,
        providers={"anthropic": ProviderSettings(base_url=loopback_anthropic.base_url, auth_profiles=[key])},
        models={name: ModelSettings(extra_body={"tools": [definition]})},
        home=folder.parent,
        workspace=tmp_path,
    )
    asked = ToolCall("c1", "memory", {"command": "create", "path": "/memories/a", "file_text": "tea"})
    loopback_anthropic.say(AssistantMessage([asked], stop_reason="tool_calls"), "Kept.")
    async with Agent(config, environ={}) as agent:
        result = await agent.run("Remember tea")
    assert result.reply == "Kept."
    assert (folder / "a").read_text() == "tea"
    sent = [each for each in loopback_anthropic.requests[0].json["tools"] if each["name"] == "memory"]
    assert [{key: each[key] for key in each if key != "cache_control"} for each in sent] == [definition]
