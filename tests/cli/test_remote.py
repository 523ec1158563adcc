"""`remote.md`: proxies in front of a gateway. `backup.md`: a copy of a running home continues."""

import asyncio
import re
import shutil
import signal
import ssl
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from tests.cli.gateway import GatewayProgram
from tests.cli.model import Model
from tests.worlds.chat.delivery.channels.servers.program import running
from tests.worlds.moo.djangomoo import free_port

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    """The page's fenced blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


class Loopback(AbstractResolver):
    """Finds every host on this machine."""

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host="127.0.0.1", port=port, family=2, proto=0, flags=0)]

    async def close(self) -> None:
        pass


@asynccontextmanager
async def proxied(
    name: str, gateway: GatewayProgram, folder: Path
) -> AsyncGenerator[tuple[aiohttp.ClientSession, str]]:
    """A client of a proxy in front of the gateway, as the page configures it, and the proxy's URL."""
    port, certificate, key = free_port(), folder / "cert.pem", folder / "key.pem"
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=agent.example"]
    named = ["-addext", "subjectAltName=DNS:agent.example", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*request, *named], check=True, capture_output=True)
    local = gateway.url.removeprefix("http://")
    if name == "nginx":
        [server] = blocks("remote.md", "nginx")
        server = server.replace("listen 443", f"listen 127.0.0.1:{port}").replace("127.0.0.1:29481", local)
        server = server.replace("/etc/ssl/agent.example.pem", str(certificate))
        server = server.replace("/etc/ssl/agent.example.key", str(key))
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        paths = "".join(f"{kind}_temp_path {folder / kind};\n" for kind in kinds)
        text = f"daemon off;\npid {folder}/pid;\nerror_log {folder}/errors;\nevents {{}}\n"
        text += f"http {{\naccess_log off;\n{paths}{server}}}\n"
        command = ["nginx", "-p", str(folder), "-c", str(folder / "proxy.conf")]
    else:
        [server] = blocks("remote.md", "caddy")
        server = server.replace("127.0.0.1:29481", local)
        server = server.replace(
            "agent.example {", f"agent.example:{port} {{\n\tbind 127.0.0.1\n\ttls {certificate} {key}"
        )
        text = f"{{\n\tadmin off\n\tauto_https disable_redirects\n\tstorage file_system {folder}\n}}\n{server}"
        command = ["caddy", "run", "--config", str(folder / "proxy.conf"), "--adapter", "caddyfile"]
    (folder / "proxy.conf").write_text(text)
    tls = ssl.create_default_context(cafile=str(certificate))
    with running(command, folder, port):
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(resolver=Loopback(), ssl=tls)) as http:
            yield http, f"https://agent.example:{port}"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("nginx", marks=pytest.mark.needs("nginx", "openssl")),
        pytest.param("caddy", marks=pytest.mark.needs("caddy", "openssl")),
    ],
)
async def test_proxy_of_the_page_serves_the_gateway(
    name: str,
    home: Path,
    model: Model,
    gateway: GatewayProgram,
    tmp_path: Path,
) -> None:
    with (home / "denizen.toml").open("a") as settings:
        settings.write(next(block for block in blocks("remote.md", "toml") if "agent.example" in block))
    await gateway.start()
    token = {"Authorization": f"Bearer {gateway.token}"}
    (folder := tmp_path / "proxy").mkdir()
    async with proxied(name, gateway, folder) as (http, url):
        async with http.ws_connect(f"{url}/api/events", headers=token) as events:
            body = {"channel": "http", "chat": "ann", "sender": "ann", "content": "Hello"}
            async with http.post(f"{url}/api/messages", headers=token, json=body) as answer:
                assert answer.status == 202
            assert "seq" in (await events.receive(timeout=60)).data
        statuses = [
            (token, 200),
            (token | {"Origin": url}, 200),
            (token | {"Origin": "https://evil.example"}, 403),
            ({}, 401),
        ]
        for headers, status in statuses:
            async with http.get(f"{url}/api/status", headers=headers) as answer:
                assert answer.status == status
        async with http.post(f"{url}/api/sign-in-links", headers=token) as answer:
            code = (await answer.json())["code"]
        async with http.post(f"{url}/api/sign-in", json={"code": code}) as answer:
            assert "Secure" in answer.headers["Set-Cookie"]


@pytest.mark.needs("sqlite3")
async def test_copy_of_a_running_home_continues(
    home: Path,
    model: Model,
    gateway: GatewayProgram,
    environ: dict[str, str],
) -> None:
    model.plays("Hello, Ann.", "You said hello.")
    await gateway.start()
    await gateway.post("ann", "Hello", id="1")
    await gateway.replies("ann", 1)
    user = Path(environ["HOME"])
    (user / ".denizen").symlink_to(home)
    _, while_running, restore = blocks("backup.md", "bash")
    await asyncio.to_thread(subprocess.run, ["bash", "-euc", while_running], check=True, env=environ)
    await gateway.end(signal.SIGKILL)
    shutil.rmtree(home)
    home.mkdir(mode=0o700)
    await asyncio.to_thread(subprocess.run, ["bash", "-euc", restore], check=True, env=environ)
    await gateway.start()
    assert (await gateway.post("ann", "Hello", id="1"))[1]["accepted"] is False
    await gateway.post("ann", "What did I say?", id="2")
    assert [reply["content"] for reply in await gateway.replies("ann", 2)] == ["Hello, Ann.", "You said hello."]
    assert "Hello, Ann." in str(model.requests[-1])
