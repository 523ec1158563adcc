"""Undo, redo and forks over HTTP, the changes between checkpoints, and what the model saw."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.engine.scene import call
from tests.worlds.chat.conftest import Scene, Serve, key_of
from tests.worlds.chat.http.test_http import Client, reached

from denizen import Agent, load_config, run_agent
from denizen.testing import ScriptedModel

WRITES = call(("write", {"path": "roof.txt", "content": "tight\n"}))


async def ask(client: Client, what: str, key: str = "", method: str = "GET", **body: Any) -> Any:
    path = f"/api/sessions/{quote(key or key_of('ann'), safe='')}{what}"
    return await client.ask(method, path, **({"json": body} if method == "POST" else {}))


async def say(scene: Scene, client: Client, content: str, count: int) -> None:
    await client.post(content=content)
    await scene.contents(count)
    await scene.settled()


def project(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "roof.txt").write_text("leaks\n")
    return workspace


async def test_undo_and_redo_are_previewed_and_done(serve: Serve, home: Path, tmp_path: Path) -> None:
    workspace = project(tmp_path)
    async with serve(WRITES, "done", workspace=workspace) as scene, reached(scene, home) as client:
        await say(scene, client, "Mend the roof", 1)
        assert (workspace / "roof.txt").read_text() == "tight\n"
        assert (await ask(client, "/redo"))[0] == 409
        status, preview = await ask(client, "/undo")
        assert (status, preview["said"], preview["paths"], preview["conflicts"]) == (
            200,
            "Mend the roof",
            ["roof.txt"],
            [],
        )
        assert "-tight\n+leaks\n" in preview["diff"]
        assert await ask(client, "/undo", method="POST") == (200, {"said": "Mend the roof", "left": []})
        assert (workspace / "roof.txt").read_text() == "leaks\n"
        assert (await ask(client, "/undo"))[0] == 409
        status, preview = await ask(client, "/redo")
        assert (status, preview["paths"]) == (200, ["roof.txt"])
        assert "-leaks\n+tight\n" in preview["diff"]
        assert (await ask(client, "/redo", method="POST"))[0] == 200
        assert (workspace / "roof.txt").read_text() == "tight\n"
        _, page = await ask(client, "")
        assert "user" in {entry["type"] for entry in page["entries"]}


async def test_undo_leaves_files_that_somebody_changed_unless_it_is_forced(
    serve: Serve, home: Path, tmp_path: Path
) -> None:
    workspace = project(tmp_path)
    async with serve(WRITES, "done", WRITES, "again", workspace=workspace) as scene, reached(scene, home) as client:
        await say(scene, client, "Mend the roof", 1)
        (workspace / "roof.txt").write_text("mine\n")
        _, preview = await ask(client, "/undo")
        assert preview["conflicts"] == ["roof.txt"]
        _, undone = await ask(client, "/undo", method="POST")
        assert undone["left"] == ["roof.txt"]
        assert (workspace / "roof.txt").read_text() == "mine\n"
        await say(scene, client, "Mend it again", 2)
        (workspace / "roof.txt").write_text("mine too\n")
        assert (await ask(client, "/undo", method="POST", force=True))[0] == 200
        assert (workspace / "roof.txt").read_text() == "mine\n"


async def test_session_with_an_open_turn_is_not_undone(serve: Serve, home: Path) -> None:
    async with serve(call(("post", {"text": "hello"}))) as scene, reached(scene, home) as client:
        await client.post(content="Say hello")
        await scene.replies(1)
        assert (await ask(client, "/undo", method="POST"))[0] == 409
        assert (await ask(client, "/undo", key_of("nobody"), "POST"))[0] == 404


async def test_terminals_session_is_undone_in_its_own_folder(serve: Serve, home: Path, tmp_path: Path) -> None:
    workspace = project(tmp_path)
    rules = {"policy": {"rules": [{"tool": "write", "match": "*", "decide": "allow"}]}}
    config = load_config(home=home, environ={}, cwd=home, workspace=workspace, overrides=rules)
    environ = {"PATH": os.environ["PATH"]}
    async with Agent(config, model=ScriptedModel([WRITES, "done"]), environ=environ, profile="coder") as agent:
        result = await run_agent("Mend the roof", session_key="shop", agent=agent)
        assert result.stop_reason == "answered"
    shop = key_of("shop", "cli")
    async with serve() as scene, reached(scene, home) as client:
        _, preview = await ask(client, "/undo", shop)
        assert preview["paths"] == ["roof.txt"]
        assert (await ask(client, "/undo", shop, "POST"))[0] == 200
        assert (workspace / "roof.txt").read_text() == "leaks\n"
        status, refused = await ask(client, "/context", shop)
        assert (status, "denizen context shop" in refused["error"]["message"]) == (409, True)


async def test_fork_begins_a_chat_with_the_same_past(serve: Serve, home: Path) -> None:
    async with serve("one", "two", "three") as scene, reached(scene, home) as client:
        await say(scene, client, "First", 1)
        _, page = await ask(client, "")
        end = page["entries"][-1]["id"]
        await say(scene, client, "Second", 2)
        forked = {"session_key": key_of("branch"), "chat": "branch"}
        assert await ask(client, "/fork", method="POST", at=end, chat="branch") == (200, forked)
        assert (await ask(client, "/fork", method="POST", chat="branch"))[0] == 409
        assert (await ask(client, "/fork", method="POST", at="nonsense"))[0] == 409
        assert (await ask(client, "/fork", key_of("nobody"), "POST"))[0] == 404
        await client.post(chat="branch", content="Third")
        await scene.contents(1, "branch")
        said = [each.text for each in scene.model.requests[-1].messages]
        assert any("First" in text for text in said)
        assert not any("Second" in text for text in said)


async def test_changes_between_checkpoints_are_shown_without_secrets(serve: Serve, home: Path, tmp_path: Path) -> None:
    workspace = project(tmp_path)
    async with serve(WRITES, "done", workspace=workspace) as scene, reached(scene, home) as client:
        await say(scene, client, "Mend the roof", 1)
        _, page = await ask(client, "")
        first, last = [each["snapshot"] for each in page["entries"] if each["type"] == "checkpoint"]
        status, changes = await ask(client, f"/diff?from={first}&to={last}")
        assert (status, changes["paths"]) == (200, ["roof.txt"])
        assert "-leaks\n+tight\n" in changes["diff"]
        (workspace / "new.txt").write_text("new\n")
        assert (await ask(client, f"/diff?from={last}"))[1]["paths"] == ["new.txt"]
        assert (await ask(client, "/diff?from=nonsense"))[0] == 404


async def test_model_context_is_shown_at_any_entry(serve: Serve, home: Path) -> None:
    async with serve("one", "two") as scene, reached(scene, home) as client:
        await say(scene, client, "First", 1)
        await say(scene, client, "Second", 2)
        _, page = await ask(client, "")
        [first, second] = [each["id"] for each in page["entries"] if each["type"] == "user"]
        for at, count in ((first, 1), (second, 2)):
            status, view = await ask(client, f"/context?at={at}")
            said = [part["text"] for part in view["parts"] if part["role"] == "user"]
            assert (status, len([text for text in said if "First" in text or "Second" in text])) == (200, count)
        _, view = await ask(client, "/context")
        assert [part["role"] for part in view["parts"] if part["kind"] == "prompt"] == ["system"]
        assert view["tokens"] == sum(part["tokens"] for part in view["parts"])
        assert (await ask(client, "/context?at=nonsense"))[0] == 404
