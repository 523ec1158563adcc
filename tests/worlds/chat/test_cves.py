"""Faults that gateways like this one had, each a test by its name."""

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest
from tests.engine.scene import call
from tests.worlds.chat.conftest import PATIENCE, Serve, said
from tests.worlds.chat.http.test_events import socket
from tests.worlds.chat.http.test_http import POST, reached
from tests.worlds.chat.test_gateway import Held

from denizen.config.trust import trust
from denizen.errors import ConfigError
from denizen.worlds.chat.http.token import read_token

INSIDE = (
    "evil@localhost",
    "localhost/evil.example",
    "localhost?evil",
    "localhost#evil",
    "localhost:evil",
    "localhost:80:80",
)
OURS = (
    "http://evil@{host}",
    "http://{host}/",
    "http://{host}?",
    "ftp://{host}",
    "{host}",
    "http://{host} http://evil.example",
)
"""What has a name of the gateway in it, and isn't one."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("data", [b"", b"\n", b" \t\n"])
async def test_gateway_does_not_start_with_an_empty_token(serve: Serve, home: Path, data: bytes) -> None:
    token = home / "token"
    token.write_bytes(data)
    token.chmod(0o600)
    async with serve() as scene:
        with pytest.raises(ConfigError, match="token is empty"):
            async with reached(scene, home):
                pass


async def test_cve_2026_25253_web_socket_of_another_page_is_refused(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client:
        for origin in ("https://evil.example", "null", "http://127.0.0.1:1"):
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                async with socket(client, home, Origin=origin):
                    pass
        with pytest.raises(aiohttp.WSServerHandshakeError, match="401"):
            async with socket(client, home, Authorization="Bearer wrong"):
                pass
        async with socket(client, home, Origin=client.url):
            pass


async def test_cve_2026_25593_nothing_is_read_or_changed_without_login(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client:
        _, described = await client.ask("GET", "/openapi.json")
        token = read_token(home)
        without_login = {"/healthz": 200, "/readyz": 200, "/api/sign-in": 400}
        for path, operations in described["paths"].items():
            for method in operations:
                status, _ = await client.ask(method.upper(), path, {"Authorization": ""})
                assert status == without_login.get(path, 401)
        for path in ("/api/config", "/config", "/api/sessions/../config"):
            assert (await client.ask("POST", path, {"Authorization": ""}, json={}))[0] == 401
            assert (await client.ask("POST", path, json={}))[0] in {404, 405}, "no route changes settings"
        assert read_token(home) == token


async def test_ghsa_rqpp_rjj8_7wv8_scopes_that_a_client_claims_give_it_nothing(serve: Serve, home: Path) -> None:
    claims = {"X-Scopes": "operator.admin", "X-Role": "owner", "Authorization": ""}
    async with serve(call(("post", {"text": "hi"})), "done") as scene, reached(scene, home) as client:
        assert (await client.ask("POST", "/api/messages", claims, json=POST))[0] == 401
        for claim in ({"scopes": ["operator.admin"]}, {"metadata": {"approved": True}}, {"role": "owner"}):
            assert (await client.ask("POST", "/api/messages", json={**POST, **claim}))[0] == 400
        await client.post(id="1", sender="owner")
        assert "/approve" in (await scene.contents(1))[0], "it is asked for all that"


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer ", "Bearer wrong", "Basic {token}", "Bearer {token}x"])
async def test_cve_2026_28472_token_is_compared_not_only_present(serve: Serve, home: Path, given: str) -> None:
    async with serve() as scene, reached(scene, home) as client:
        headers = {"Authorization": given.format(token=read_token(home))}
        for method, path in (("POST", "/api/messages"), ("GET", "/api/replies?chat=a"), ("GET", "/nowhere")):
            assert (await client.ask(method, path, headers))[0] == 401
        assert (await client.ask("GET", "/healthz", headers))[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::1", *INSIDE])
async def test_dns_rebinding_is_refused_on_every_route(serve: Serve, home: Path, host: str) -> None:
    async with serve() as scene, reached(scene, home) as client:
        for path in ("/healthz", "/api/replies?chat=a"):
            assert (await client.ask("GET", path, {"Host": host}))[0] == 403


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://[", "", *OURS])
async def test_cve_2026_22812_pages_of_another_origin_are_refused(serve: Serve, home: Path, origin: str) -> None:
    async with serve() as scene, reached(scene, home) as client:
        origin = origin.format(host=client.url.removeprefix("http://"))
        for method, path in (("GET", "/healthz"), ("OPTIONS", "/api/messages"), ("POST", "/api/messages")):
            assert (await client.ask(method, path, {"Origin": origin}))[0] == 403
        assert (await client.ask("GET", "/healthz", {"Origin": client.url}))[0] == 200


async def test_ghsa_m8wm_r5vq_qjpg_new_token_ends_the_old_one_and_live_connections(serve: Serve, home: Path) -> None:
    held = Held("one")
    async with serve(held) as scene, reached(scene, home) as client, socket(client, home) as opened:
        old = {"Authorization": f"Bearer {read_token(home)}"}
        waiting = asyncio.create_task(client.ask("GET", "/api/replies?chat=ann&wait=60"))
        await scene.say("1")
        await held.begun.wait()
        assert await client.ask("POST", "/api/token") == (200, {"rotated": True})
        async with asyncio.timeout(PATIENCE):
            while (await opened.receive()).type not in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED}:
                pass
            (ended,) = await asyncio.gather(waiting, return_exceptions=True)
        refused = not isinstance(ended, BaseException) and ended[0] == 401  # it came after the new token
        assert refused or isinstance(ended, aiohttp.ClientError)
        new = {"Authorization": f"Bearer {read_token(home)}"}
        assert old != new
        assert (await client.ask("GET", "/api/sessions", old))[0] == 401
        assert (await client.ask("GET", "/api/sessions", new))[0] == 200
        held.go.set()
        assert await scene.contents(1) == ["one"], "turns go on"


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest/meta-data/", "http://127.0.0.1:1/", "http://10.0.0.1/"])
async def test_cve_2026_26322_internal_addresses_are_not_fetched(serve: Serve, project: Path, url: str) -> None:
    async with serve(call(("web_fetch", {"url": url})), "no", workspace=project) as scene:
        await scene.say("fetch it")
        assert await scene.contents(1) == ["no"]
        assert "not a public address" in said(scene.model)


@pytest.mark.parametrize("host", ["[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[64:ff9b::7f00:1]"])
async def test_ghsa_cg7w_rg45_pc59_v4_address_in_a_v6_one_is_not_fetched(
    serve: Serve, project: Path, host: str
) -> None:
    async with serve(call(("web_fetch", {"url": f"http://{host}:1/"})), "no", workspace=project) as scene:
        await scene.say("fetch it")
        assert await scene.contents(1) == ["no"]
        assert "not a public address" in said(scene.model)


@pytest.mark.parametrize(
    "command",
    [
        "rm -f kept",
        "/bin/rm -f kept",
        "env rm -f kept",
        "true; rm -f kept",
        "bash -c 'rm -f kept'",
        "echo $(rm -f kept)",
    ],
)
async def test_ghsa_cwj3_vqpp_pmxr_deny_list_holds_however_a_command_is_written(
    serve: Serve, project: Path, command: str
) -> None:
    rules = [{"tool": "bash", "match": "*", "decide": "allow"}, {"tool": "bash", "match": "rm *", "decide": "deny"}]
    (project / "kept").write_text("kept")
    script = (call(("bash", {"command": command})), "no")
    async with serve(*script, workspace=project, config={"policy": {"rules": rules}}) as scene:
        await scene.say("remove it")
        assert await scene.contents(1) == ["no"]
        assert "denies it" in said(scene.model)
    assert (project / "kept").exists()


async def test_cve_2025_61260_project_runs_nothing_before_it_is_trusted(
    serve: Serve, home: Path, project: Path
) -> None:
    ran = project / "ran"
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"own": {"command": "touch", "args": [str(ran)]}}}))
    hooks = f'[[hooks]]\non = "turn_start"\ncommand = "touch {ran}"\n'
    (project / "denizen.toml").write_text(hooks)
    async with serve("hello", workspace=project) as scene:
        await scene.say("hi")
        assert await scene.contents(1) == ["hello"]
    assert not ran.exists()
    (project / "denizen.toml").unlink()
    trust(home, project)
    async with serve("hello", workspace=project) as scene:
        await scene.say("hi again")
        await scene.contents(2)
    assert ran.exists(), "otherwise this shows nothing"
