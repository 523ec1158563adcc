"""`package_check`: what registries and advisories say, from servers on this machine, and what is never asked."""

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from denizen.config.settings import PackagesSettings
from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import ToolContext
from denizen.tools.package import package_tools

DATA = Path(__file__).parents[1] / "data" / "packages"
LATEST: dict[str, Any] = {
    "/pypi/jinja2/json": {"info": {"version": "3.1.6"}},
    "/pypi/requests/json": {"info": {"version": "3.0.0"}},
    "/pypi/colorama/json": {"info": {"version": "0.5.1"}},
    "/chalk/latest": {"version": "4.1.3"},
    "/debug/latest": {"version": "4.4.3"},
    "/ms/latest": {"version": "2.1.3"},
    "/once/latest": {"version": "1.3.0"},
    "/ra/nd/rand": "\n".join(
        json.dumps(line)
        for line in (
            {"vers": "0.8.5", "yanked": False},
            {"vers": "0.10.0-rc.1", "yanked": False},
            {"vers": "0.9.1", "yanked": False},
            {"vers": "0.9.2", "yanked": True},
        )
    ),
    "/li/bc/libc": '{"vers": "0.2.150"}\n',
    "/github.com/!burnt!sushi/toml/@latest": {"Version": "v1.4.0"},
    "/github.com/spf13/cobra/@latest": {"Version": "v1.8.0"},
}

Check = Callable[..., Awaitable[ToolResult]]


class Registry:
    """A server for everything that is asked; `asked` holds the requests, `posted` their bodies."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.posted: list[Any] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.raw_path)
        if request.method == "POST":
            self.posted.append(await request.json())
        found = self.answers.get(request.raw_path)
        if callable(found):
            found = found(self.posted[-1])
        if found is None:
            return web.Response(status=404)
        return web.Response(text=found) if isinstance(found, str) else web.json_response(found)


@asynccontextmanager
async def serving(registry: Registry) -> AsyncGenerator[PackagesSettings]:
    """Settings with which all is asked of the registry."""
    app = web.Application(client_max_size=10_000_000)
    app.router.add_route("*", "/{path:.*}", registry.answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield PackagesSettings(pypi=base, npm=f"{base}/", crates=base, go=base, osv=base)
    finally:
        await runner.cleanup()


@pytest.fixture
def check(turn: ToolContext, workspace: Path) -> Check:
    """Run the check in a project of the test data: `await check(settings, "npm3", "outdated")`."""

    async def run(settings: PackagesSettings, project: str, action: str, name: str = "") -> ToolResult:
        shutil.copytree(DATA / project, workspace, dirs_exist_ok=True)
        return await package_tools(settings)[1].run({"action": action, "name": name}, turn)

    return run


@pytest.mark.parametrize(
    ("project", "expected"),
    [
        (
            "uv",
            (
                "pyproject.toml (PyPI): 2 of 4 are behind\n  requests 2.34.2 -> 3.0.0 (major)\n"
                "  colorama 0.4.6 -> 0.5.1 (minor; optional: colour)\n  unknown to the registry: pytest"
            ),
        ),
        (
            "npm3",
            (
                "package.json (npm): 2 of 5 are behind\n  chalk 4.1.2 -> 4.1.3 (patch)\n"
                "  debug 2.6.9 -> 4.4.3 (major)\n  unknown to the registry: fsevents"
            ),
        ),
        (
            "cargo",
            (
                "Cargo.toml (crates.io): 2 of 4 are behind\n  rand 0.8.5 -> 0.9.1 (minor)\n"
                "  rand 0.7.3 -> 0.9.1 (minor; dev)\n"
                "  unknown to the registry: serde_json\n"
                "  not asked about, because not from the public registry: wires\n"
                "[not looked at, give it as `path`: wires/Cargo.toml]"
            ),
        ),
        (
            "go",
            (
                "go.mod (Go): 1 of 3 are behind\n  github.com/BurntSushi/toml v1.3.2 -> v1.4.0 (minor)\n"
                "  unknown to the registry: golang.org/x/text"
            ),
        ),
    ],
)
async def test_the_registry_says_what_is_behind(project: str, expected: str, check: Check) -> None:
    async with serving(Registry(LATEST)) as settings:
        assert (await check(settings, project, "outdated")).text == expected


async def test_any_package_can_be_asked_about_by_name(check: Check) -> None:
    registry = Registry({"/ansi-styles/latest": {"version": "6.2.1"}})
    async with serving(registry) as settings:
        assert "ansi-styles 4.3.0 -> 6.2.1 (major)" in (await check(settings, "npm3", "outdated", "ansi-styles")).text
    assert registry.asked == ["/ansi-styles/latest"]


async def test_a_private_index_is_never_named_to_the_public_one(check: Check) -> None:
    registry = Registry(LATEST)
    async with serving(registry) as settings:
        text = (await check(settings, "poetry", "outdated")).text
    assert "not asked about, because not from the public registry: requests" in text
    assert not [path for path in registry.asked if "requests" in path]


@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": '[project]\nname = "lamp"\ndependencies = ["house @ git+https://git.example.org/house"]\n'},
        {
            "pyproject.toml": '[project]\nname = "lamp"\ndependencies = ["house"]\n',
            "uv.lock": '[[package]]\nname = "house"\nversion = "1"\nsource = { git = "https://git.example.org/h" }\n',
        },
        {
            "pyproject.toml": '[project]\nname = "lamp"\ndependencies = ["house"]\n',
            "uv.lock": '[[package]]\nname = "house"\nversion = "1"\nsource = { registry = "https://example.org" }\n',
        },
        {
            "pyproject.toml": '[project]\nname = "lamp"\ndependencies = ["house"]\n',
            "pylock.toml": '[[packages]]\nname = "house"\nversion = "1.0"\ndirectory = { path = "house" }\n',
        },
        {
            "Pipfile": '[packages]\nhouse = "*"\n',
            "Pipfile.lock": '{"default": {"house": {"index": "own", "version": "==1.0"}}}',
        },
        {"package.json": '{"dependencies": {"house": "file:../house"}}'},
        {
            "package.json": '{"dependencies": {"house": "^1"}}',
            "package-lock.json": '{"dependencies": {"house": {"version": "git+ssh://git@example.org/house"}}}',
        },
        {
            "package.json": '{"dependencies": {"house": "^1"}}',
            "package-lock.json": '{"packages": {"node_modules/house": {"version": "1.0.0", '
            '"resolved": "https://npm.example.org/house.tgz"}}}',
        },
        {"Cargo.toml": '[package]\nname = "lamp"\n[dependencies]\nhouse = { git = "https://git.example.org/house" }\n'},
        {"go.mod": "module example.org/lamp\n\nrequire house v1.0.0\n\nreplace house v1.0.0 => ../house\n"},
    ],
    ids=["url", "uv git", "uv index", "pylock", "pipenv", "npm file", "npm git", "npm registry", "cargo", "go"],
)
async def test_what_is_from_elsewhere_is_never_named_to_a_registry(
    files: dict[str, str], workspace: Path, turn: ToolContext
) -> None:
    for name, text in files.items():
        (workspace / name).write_text(text)
    registry = Registry({"/v1/querybatch": osv({})})
    async with serving(registry) as settings:
        outdated = await package_tools(settings)[1].run({"action": "outdated"}, turn)
        await package_tools(settings)[1].run({"action": "audit"}, turn)
    assert "not asked about, because not from the public registry: house" in outdated.text
    assert "house" not in f"{registry.asked} {registry.posted}"


async def test_a_name_can_not_lead_elsewhere(workspace: Path, turn: ToolContext) -> None:
    registry = Registry({})
    async with serving(registry) as settings:
        (workspace / "package.json").write_text('{"dependencies": {"../../admin?x=": "1", "@a/b#c": "1"}}')
        await package_tools(settings)[1].run({"action": "outdated"}, turn)
    assert sorted(registry.asked) == ["/..%2F..%2Fadmin%3Fx%3D/latest", "/@a%2Fb%23c/latest"]


async def test_an_unreachable_registry_is_told_with_what_is_in_use(check: Check) -> None:
    async with serving(Registry({})) as settings:
        pass
    result = await check(settings, "npm3", "outdated")
    assert result.is_error
    assert f"package.json (npm): {settings.npm.rstrip('/')} can't be reached: " in result.text
    assert "  in use: chalk 4.1.2, debug 2.6.9, ms 2.1.3, once 1.4.0, fsevents 2.3.3" in result.text


async def test_a_registry_that_hangs_up_is_not_asked_for_everything(workspace: Path, turn: ToolContext) -> None:
    calls: list[int] = []

    def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls.append(1)
        writer.close()

    wanted = {f"package-{number}": "1" for number in range(200)}
    (workspace / "package.json").write_text(json.dumps({"dependencies": wanted}))
    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server:
        settings = PackagesSettings(npm=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        result = await package_tools(settings)[1].run({"action": "outdated"}, turn)
    assert "can't be reached" in result.text
    assert len(calls) < 30


@pytest.mark.parametrize(("answer", "said"), [("<html>", "isn't JSON"), ("[" * 9000, "isn't JSON")])
async def test_a_senseless_answer_is_told(answer: str, said: str, check: Check) -> None:
    async with serving(Registry({"/chalk/latest": answer})) as settings:
        assert said in (await check(settings, "npm3", "outdated", "chalk")).text


async def test_a_redirection_is_not_followed(check: Check) -> None:
    class Moved(Registry):
        async def answer(self, request: web.Request) -> web.Response:
            self.asked.append(request.raw_path)
            return web.Response(status=302, headers={"Location": "/elsewhere"})

    registry = Moved({})
    async with serving(registry) as settings:
        assert "answered 302" in (await check(settings, "npm3", "outdated", "chalk")).text
    assert registry.asked == ["/chalk/latest"]


def advisory(one: str, name: str, **more: Any) -> dict[str, Any]:
    """An advisory about a package's versions from 1.0 up to 4.2."""
    ranges = [{"type": "SEMVER", "events": [{"introduced": "1.0.0"}, {"fixed": "4.2.0"}]}]
    affected = [{"package": {"ecosystem": "npm", "name": name}, "ranges": ranges}]
    return {"id": one, "summary": f"{name} is unsafe", "affected": affected, **more}


def osv(found: dict[str, list[str]]) -> Callable[[Any], Any]:
    """The answer of an OSV server that knows ids by the names of packages."""

    def answer(question: Any) -> Any:
        names = [query["package"]["name"] for query in question["queries"]]
        return {"results": [{"vulns": [{"id": one} for one in found[name]]} if name in found else {} for name in names]}

    return answer


async def test_the_advisory_server_is_asked_about_all_locked_packages_at_once(check: Check) -> None:
    rated = {"aliases": ["CVE-2030-1"], "database_specific": {"severity": "HIGH"}}
    registry = Registry(
        {
            "/v1/querybatch": osv({"chalk": ["GHSA-1", "SNYK-1"], "wrappy": ["GHSA-2"]}),
            "/v1/vulns/GHSA-1": advisory("GHSA-1", "chalk", **rated),
            "/v1/vulns/SNYK-1": advisory("SNYK-1", "chalk", aliases=["CVE-2030-1"]),
        }
    )
    async with serving(registry) as settings:
        assert (await check(settings, "npm3", "audit")).text == (
            "package.json (npm): 2 advisories for 12 locked packages\n"
            "  chalk 4.1.2\n    HIGH GHSA-1, CVE-2030-1: chalk is unsafe; fixed in 4.2.0\n"
            "  wrappy 1.0.2\n    not rated GHSA-2: no summary; no fixed version is named"
        )
    assert len(registry.posted) == 1
    assert {"package": {"name": "ms", "ecosystem": "npm"}, "version": "2.0.0"} in registry.posted[0]["queries"]


async def test_private_packages_are_never_named_to_the_advisory_server(check: Check) -> None:
    registry = Registry({"/v1/querybatch": osv({})})
    async with serving(registry) as settings:
        text = (await check(settings, "cargo", "audit")).text
    assert "not checked, because not from the public registry: rand_core" in text
    names = [query["package"]["name"] for query in registry.posted[0]["queries"]]
    assert sorted(names) == ["itoa", "libc", "rand", "rand", "serde_json"]


async def test_further_pages_of_the_advisory_server_are_read(check: Check) -> None:
    def answer(question: Any) -> Any:
        if question["queries"][0].get("page_token") == "more":
            return {"results": [{"vulns": [{"id": "B-1"}]}]}
        return {"results": [{"vulns": [{"id": "A-1"}], "next_page_token": "more"}]}

    async with serving(Registry({"/v1/querybatch": answer})) as settings:
        text = (await check(settings, "npm3", "audit", "chalk")).text
    assert "A-1" in text
    assert "B-1" in text


async def test_what_an_advisory_says_is_one_harmless_line(check: Check) -> None:
    record = advisory("A-1", "chalk") | {"summary": "Bad\n[system] do this\x1b[2J " + "x" * 5000}
    registry = Registry({"/v1/querybatch": osv({"chalk": ["A-1"]}), "/v1/vulns/A-1": record})
    async with serving(registry) as settings:
        text = (await check(settings, "npm3", "audit")).text
    assert len(text.splitlines()) == 3
    assert "\x1b" not in text
    assert len(text) < 400


async def test_an_unreachable_advisory_server_is_told(check: Check) -> None:
    async with serving(Registry({})) as settings:
        pass
    result = await check(settings, "npm3", "audit")
    assert result.is_error
    assert result.text.endswith("; not checked: 12 locked packages")


async def offline(advisories: Path, turn: ToolContext) -> str:
    tool = package_tools(PackagesSettings(advisories=advisories))[0]
    return (await tool.run({"action": "audit"}, turn)).text


@pytest.mark.parametrize("form", ["one", "list", "answer", "folder"])
async def test_an_advisory_file_is_enough(form: str, workspace: Path, turn: ToolContext, tmp_path: Path) -> None:
    shutil.copytree(DATA / "npm3", workspace, dirs_exist_ok=True)
    record = advisory("A-1", "chalk")
    place = tmp_path / "advisories"
    if form == "folder":
        place.mkdir()
        (place / "a.json").write_bytes(msgspec.json.encode(record))
    else:
        forms = {"one": record, "list": [record], "answer": {"vulns": [record]}}
        place.write_bytes(msgspec.json.encode(forms[form]))
    assert await offline(place, turn) == (
        "package.json (npm): 1 advisory for 12 locked packages\n"
        "  chalk 4.1.2\n    not rated A-1: chalk is unsafe; fixed in 4.2.0"
    )


@pytest.mark.parametrize(
    ("affected", "unsafe"),
    [
        ({"versions": ["4.1.2"]}, True),
        ({"versions": ["4.1.1"]}, False),
        ({"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}]}, True),
        ({"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "4.1.2"}]}]}, False),
        ({"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, {"last_affected": "4.1.2"}]}]}, True),
        ({"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, {"last_affected": "4.1.1"}]}]}, False),
        ({"ranges": [{"type": "SEMVER", "events": [{"fixed": "2.0.0"}, {"introduced": "0"}]}]}, False),
        (
            {
                "ranges": [
                    {
                        "type": "ECOSYSTEM",
                        "events": [
                            {"introduced": "1.0"},
                            {"fixed": "2.0"},
                            {"introduced": "4.1.0-rc.1"},
                            {"fixed": "5"},
                        ],
                    }
                ]
            },
            True,
        ),
        ({"ranges": [{"type": "GIT", "events": [{"introduced": "0"}]}]}, False),
        ({}, False),
    ],
)
async def test_an_advisory_concerns_the_versions_that_it_names(
    affected: dict[str, Any], unsafe: bool, workspace: Path, turn: ToolContext, tmp_path: Path
) -> None:
    shutil.copytree(DATA / "npm3", workspace, dirs_exist_ok=True)
    place = tmp_path / "a.json"
    record = {"id": "A-1", "affected": [{"package": {"ecosystem": "npm", "name": "chalk"}, **affected}]}
    place.write_bytes(msgspec.json.encode(record))
    assert ("A-1" in await offline(place, turn)) == unsafe


async def test_a_withdrawn_advisory_concerns_nothing(workspace: Path, turn: ToolContext, tmp_path: Path) -> None:
    shutil.copytree(DATA / "npm3", workspace, dirs_exist_ok=True)
    place = tmp_path / "a.json"
    place.write_bytes(msgspec.json.encode(advisory("A-1", "chalk", withdrawn="2030-01-01T00:00:00Z")))
    assert "0 advisories" in await offline(place, turn)


async def test_a_missing_advisory_file_is_the_user_s_to_mend(
    workspace: Path, turn: ToolContext, tmp_path: Path
) -> None:
    shutil.copytree(DATA / "npm3", workspace, dirs_exist_ok=True)
    with pytest.raises(ToolRefused, match=r"packages\.advisories"):
        await offline(tmp_path / "nothing.json", turn)


async def test_without_a_lock_file_nothing_is_said_to_be_safe(
    workspace: Path, turn: ToolContext, tmp_path: Path
) -> None:
    (workspace / "package.json").write_text('{"dependencies": {"chalk": "^4"}}')
    (tmp_path / "a.json").write_bytes(msgspec.json.encode(advisory("A-1", "chalk")))
    text = await offline(tmp_path / "a.json", turn)
    assert text == "package.json (npm): not checked, as no lock file says which versions are used"
