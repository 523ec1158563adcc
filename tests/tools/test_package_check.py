"""`package_check`: what the ecosystems' clients say, and what is never asked. Their answers are recorded ones."""

import json
import os
import re
import shutil
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest

from denizen.config.settings import PackagesSettings, SandboxSettings
from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import ToolContext
from denizen.tools.package import package_tools
from denizen.tools.sandbox import Unconfined, choose_sandbox

DATA = Path(__file__).parents[1] / "data" / "packages"
PROGRAM = """\
#!{python}
import json, os, re, sys
line = " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:]])
files = {{name: open(name).read() for name in sorted(os.listdir()) if name != "errors"}}
with open({log!r}, "a") as log:
    log.write(json.dumps([line, files, dict(os.environ)]) + "\\n")
for pattern, status, output, errors in json.load(open({answers!r})):
    if re.fullmatch(pattern, line):
        sys.stdout.write(output)
        sys.stderr.write(errors)
        sys.exit(status)
sys.exit("nobody thought of " + line)
"""
PIP_HELP = """\
  -i, --index-url <url>       Base URL of the Python Package Index (default
                              https://registry.example/simple). This should point to a
"""
PIP_UNKNOWN = """\
Could not fetch URL https://registry.example/simple/x/: 404 Client Error: Not Found for url: - skipping
ERROR: No matching distribution found for x
"""
NPM_UNKNOWN = '{"error": {"code": "E404", "summary": "Not Found", "detail": ""}}'
CARGO_UNKNOWN = "    Updating crates index\nerror: the crate `x` could not be found in registry index.\n"
GO_UNKNOWN = 'go: module x: no matching versions for query "latest"\n'

Answers = list[tuple[str, int, str, str]]

USUAL: Answers = [
    ("pip config list", 0, "", ""),
    ("pip index --help", 0, PIP_HELP, ""),
    ("npm config list", 0, "; node version = v20.20.2\n", ""),
    ("npm config get registry", 0, "https://registry.example/\n", ""),
]
UNKNOWN: Answers = [
    ("pip index .*", 1, PIP_UNKNOWN, "WARNING: pip index is currently an experimental command.\n"),
    ("npm view .*", 1, NPM_UNKNOWN, "npm error code E404\n"),
    ("cargo add .*", 101, "", CARGO_UNKNOWN),
    ("go list .*", 1, "", GO_UNKNOWN),
]


def latest() -> Answers:
    """What the clients say of some packages, and that they don't know the others."""
    python = {"jinja2": "3.1.6", "requests": "3.0.0", "colorama": "0.5.1"}
    node = {"chalk": "4.1.3", "debug": "4.4.3", "ms": "2.1.3", "once": "1.3.0", "ansi-styles": "6.2.1"}
    rust = {"rand": "0.9.1", "libc": "0.2.150"}
    modules = {"github.com/BurntSushi/toml": "v1.4.0", "github.com/spf13/cobra": "v1.8.0"}
    return [
        *(
            (f"pip index .* {name}", 0, f"{name} ({at})\nAvailable versions: {at}, 0.1\n", "")
            for name, at in python.items()
        ),
        *((f"npm view .* {name} version", 0, f'"{at}"\n', "npm warn old\n") for name, at in node.items()),
        *((f"cargo add .* {name}", 0, "", f"      Adding {name} v{at} to dependencies\n") for name, at in rust.items()),
        *(
            (f"go list .* {name}@latest", 0, json.dumps({"Path": name, "Version": at}, indent=1), "")
            for name, at in modules.items()
        ),
        *UNKNOWN,
    ]


class Programs:
    """Clients that answer as was recorded, in a folder to be put on the PATH; `asked` are their command lines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = folder / "log"
        self._answers = folder / "answers.json"
        (folder / "sh").symlink_to(shutil.which("sh") or "/bin/sh")
        self.install("pip", "npm", "cargo", "go", "pip-audit", "cargo-audit", "govulncheck")

    def install(self, *names: str) -> None:
        """Put these there."""
        text = PROGRAM.format(python=sys.executable, log=str(self._log), answers=str(self._answers))
        for name in names:
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)

    def answer(self, answers: Answers, usual: Answers = USUAL) -> None:
        """What they say from now on."""
        self._answers.write_text(json.dumps([*usual, *answers]))

    @property
    def runs(self) -> list[tuple[str, dict[str, str], dict[str, str]]]:
        """Each command line, the files that it found, and its environment."""
        return [tuple(json.loads(line)) for line in self._log.read_text().splitlines()] if self._log.exists() else []

    @property
    def asked(self) -> list[str]:
        """The command lines, but those about settings."""
        return [line for line, _, _ in self.runs if not re.match("(npm|pip) config|pip index --help", line)]


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    folder = tmp_path / "bin"
    folder.mkdir()
    return Programs(folder)


Check = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def check(turn: ToolContext, programs: Programs) -> Check:
    """Run the check in the workspace."""

    async def run(action: str, name: str = "", **settings: Any) -> ToolResult:
        environ = {"PATH": str(programs.folder), "REGISTRY_TOKEN": "s3cr3t-s3cr3t"}
        sandbox = Unconfined(SandboxSettings(), environ)
        _, tool = package_tools(PackagesSettings(**settings), sandbox)
        return await tool.run({"action": action, "name": name}, turn)

    return run


@pytest.fixture
def use(workspace: Path) -> Callable[[str], None]:
    """Fill the workspace with a project of the test data."""

    def fill(name: str) -> None:
        shutil.copytree(DATA / name, workspace, dirs_exist_ok=True)

    return fill


Use = Callable[[str], None]


@pytest.fixture
def case(use: Use, check: Check, programs: Programs) -> tuple[Use, Check, Programs]:
    """All three."""
    return use, check, programs


@pytest.mark.parametrize(
    ("project", "expected"),
    [
        (
            "uv",
            (
                "pyproject.toml (PyPI): 2 of 4 are outdated\n  requests 2.34.2 -> 3.0.0 (major)\n"
                "  colorama 0.4.6 -> 0.5.1 (minor; optional: colour)\n  unknown to the registry: pytest"
            ),
        ),
        (
            "npm3",
            (
                "package.json (npm): 2 of 5 are outdated\n  chalk 4.1.2 -> 4.1.3 (patch)\n"
                "  debug 2.6.9 -> 4.4.3 (major)\n  unknown to the registry: fsevents"
            ),
        ),
        (
            "yarn1",
            (
                "package.json (npm): 2 of 5 are outdated\n  chalk 4.1.2 -> 4.1.3 (patch)\n"
                "  debug 2.6.9 -> 4.4.3 (major)\n  unknown to the registry: fsevents"
            ),
        ),
        (
            "cargo",
            (
                "Cargo.toml (crates.io): 2 of 4 are outdated\n  rand 0.8.5 -> 0.9.1 (minor)\n"
                "  rand 0.7.3 -> 0.9.1 (minor; dev)\n"
                "  unknown to the registry: serde_json\n"
                "  not asked about, because from elsewhere: wires\n"
                "[not looked at, give it as `path`: wires/Cargo.toml]"
            ),
        ),
        (
            "go",
            (
                "go.mod (Go): 1 of 3 are outdated\n  github.com/BurntSushi/toml v1.3.2 -> v1.4.0 (minor)\n"
                "  unknown to the registry: golang.org/x/text"
            ),
        ),
    ],
)
async def test_the_client_says_what_is_outdated(
    project: str, expected: str, use: Use, check: Check, programs: Programs
) -> None:
    use(project)
    programs.answer(latest())
    assert (await check("outdated")).text == expected


async def test_any_package_can_be_asked_about_by_name(use: Use, check: Check, programs: Programs) -> None:
    use("npm3")
    programs.answer(latest())
    assert "ansi-styles 4.3.0 -> 6.2.1 (major)" in (await check("outdated", "ansi-styles")).text
    assert programs.asked == ["npm view --json --fetch-retries=0 ansi-styles version"]


async def test_clients_find_no_file_of_the_workspace_and_no_secret(use: Use, check: Check, programs: Programs) -> None:
    use("npm3")
    programs.answer(latest())
    await check("outdated")
    assert all(files == {} and "REGISTRY_TOKEN" not in environ for _, files, environ in programs.runs)


async def test_the_registries_of_the_configuration_are_asked(use: Use, check: Check, programs: Programs) -> None:
    programs.answer(latest())
    at = {name: f"https://{name}.example" for name in ("pypi", "npm", "crates", "go")}
    for project in ("uv", "npm3", "cargo", "go"):
        use(project)
    await check("outdated", **at)
    runs = {line.split()[0]: (line, environ) for line, _, environ in programs.runs}
    assert runs["pip"][1]["PIP_INDEX_URL"] == "https://pypi.example"
    assert runs["npm"][1]["npm_config_registry"] == "https://npm.example"
    assert runs["go"][1]["GOPROXY"] == "https://go.example"
    assert 'source.mirror.registry="sparse+https://crates.example/"' in runs["cargo"][0]


async def test_a_package_of_another_index_is_not_named_to_the_usual_one(
    use: Use, check: Check, programs: Programs
) -> None:
    use("poetry")
    programs.answer(latest())
    text = (await check("outdated")).text
    assert "not asked about, because from elsewhere: requests" in text
    assert not [line for line in programs.asked if "requests" in line]


async def test_an_index_that_the_user_configured_is_asked_about_all(use: Use, check: Check, programs: Programs) -> None:
    use("poetry")
    configured = [("pip config list", 0, "global.index-url='https://mirror.example/simple'\n", "")]
    programs.answer(latest(), [*configured, *USUAL])
    assert "requests 2.34.2 -> 3.0.0 (major)" in (await check("outdated")).text


LAMP = '[project]\nname = "lamp"\ndependencies = ["house"]\n'


@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": '[project]\nname = "lamp"\ndependencies = ["house @ git+https://git.example.org/house"]\n'},
        {
            "pyproject.toml": LAMP,
            "uv.lock": '[[package]]\nname = "house"\nversion = "1"\nsource = { git = "https://git.example.org/h" }\n',
        },
        {
            "pyproject.toml": LAMP,
            "uv.lock": '[[package]]\nname = "house"\nversion = "1"\nsource = { registry = "https://example.org" }\n',
        },
        {
            "pyproject.toml": LAMP,
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
        {
            "package.json": '{"dependencies": {"house": "^1", "ms": "2", "once": "1"}}',
            "yarn.lock": '# yarn lockfile v1\n\nhouse@^1:\n  version "1.0.0"\n  resolved "https://npm.example.org/h.tgz"\n\n'
            'ms@2:\n  version "2.0.0"\n  resolved "https://yarn.example/ms.tgz"\n\n'
            'once@1:\n  version "1.0.0"\n  resolved "https://yarn.example/once.tgz"\n',
        },
        {"Cargo.toml": '[package]\nname = "lamp"\n[dependencies]\nhouse = { git = "https://git.example.org/house" }\n'},
        {
            "Cargo.toml": '[package]\nname = "lamp"\n[dependencies]\nhouse = { version = "1", registry = "own" }\n',
            "Cargo.lock": '[[package]]\nname = "house"\nversion = "1.0.0"\nsource = "registry+https://own.example/index"\n',
        },
        {"go.mod": "module example.org/lamp\n\nrequire house v1.0.0\n\nreplace house v1.0.0 => ../house\n"},
    ],
    ids=[
        *("url", "uv git", "uv index", "pylock", "pipenv", "npm file", "npm git", "npm registry", "yarn registry"),
        *("cargo", "cargo registry", "go"),
    ],
)
async def test_what_is_from_elsewhere_is_never_named_to_a_registry(
    files: dict[str, str], workspace: Path, check: Check, programs: Programs
) -> None:
    for name, text in files.items():
        (workspace / name).write_text(text)
    programs.answer([*latest(), ("npm audit .*", 0, '{"vulnerabilities": {}}', ""), ("pip-audit .*", 0, "{}", "")])
    assert "not asked about, because from elsewhere: house" in (await check("outdated")).text
    await check("audit")
    sent = [f"{line} {seen}" for line, seen, _ in programs.runs if "cargo-audit" not in line]  # it sends no names
    assert "house" not in " ".join(sent)


@pytest.mark.parametrize(
    "name", ["../../admin", "--registry=https://evil.example", "a b", "http://evil.example/x", "-g"]
)
async def test_a_name_can_be_no_option_path_or_address(
    name: str, workspace: Path, check: Check, programs: Programs
) -> None:
    (workspace / "package.json").write_text(json.dumps({"dependencies": {name: "1"}}))
    (workspace / "requirements.txt").write_text("requests==1.0\n")
    (workspace / "Cargo.toml").write_text(f'[package]\nname = "lamp"\n[dependencies]\n"{name}" = "1"\n')
    programs.answer(latest())
    await check("outdated")
    assert [line for line in programs.asked if not line.startswith("pip index")] == []


async def test_a_client_that_is_not_installed_is_named(use: Use, check: Check, programs: Programs) -> None:
    use("cargo")
    (programs.folder / "cargo").unlink()
    result = await check("outdated")
    assert result.is_error
    assert result.text.startswith("Cargo.toml (crates.io): cargo isn't installed: only it can be asked\n  in use: rand")


@pytest.mark.parametrize(
    ("project", "auditor"), [("uv", "pip-audit"), ("cargo", "cargo-audit"), ("go", "govulncheck"), ("npm3", "npm")]
)
async def test_an_auditor_that_is_not_installed_is_named(
    project: str, auditor: str, use: Use, check: Check, programs: Programs
) -> None:
    use(project)
    programs.answer([])
    (programs.folder / auditor).unlink()
    result = await check("audit")
    assert result.is_error
    assert re.search(rf": {auditor} isn't installed: .*; not checked: \d+ locked packages$", result.text, re.MULTILINE)


@pytest.mark.parametrize(
    ("project", "answer", "said"),
    [
        (
            "npm3",
            (
                "npm view .*",
                1,
                '{\n  "error": {\n    "code": "ECONNREFUSED",\n    "summary": "FetchError"\n  }\n}\n',
                "npm warn old\nnpm error code ECONNREFUSED\nnpm error FetchError: request to https://x failed\n",
            ),
            "npm got no answer: npm error FetchError: request to https://x failed",
        ),
        (
            "uv",
            (
                "pip index .*",
                1,
                "Could not fetch URL https://registry.example/simple/x/: connection error: refused - skipping\n",
                "ERROR: No matching distribution found for x\n",
            ),
            "pip got no answer: Could not fetch URL https://registry.example/simple/x/: connection error",
        ),
        (
            "cargo",
            ("cargo add .*", 101, "", "    Updating index\nerror: download of config.json failed\n\nCaused by:\n"),
            "cargo got no answer: error: download of config.json failed",
        ),
        ("go", ("go list .*", 1, "", "go: dial tcp: lookup failed\n"), "go got no answer: go: dial tcp: lookup failed"),
    ],
)
async def test_an_unreachable_registry_is_reported_with_what_is_in_use(
    project: str, answer: tuple[str, int, str, str], said: str, case: tuple[Use, Check, Programs]
) -> None:
    use, check, programs = case
    use(project)
    programs.answer([answer])
    result = await check("outdated")
    assert result.is_error
    assert said in result.text
    assert "  in use: " in result.text


async def test_a_registry_that_fails_is_not_asked_for_everything(
    workspace: Path, check: Check, programs: Programs
) -> None:
    wanted = {f"package-{number}": "1" for number in range(60)}
    (workspace / "package.json").write_text(json.dumps({"dependencies": wanted}))
    programs.answer([("npm view .*", 1, "", "npm error network failed\n")])
    assert "npm error network failed" in (await check("outdated")).text
    assert len(programs.asked) < 10


@pytest.mark.parametrize("timeout", [0.001, 0.2])
async def test_a_client_that_takes_too_long_is_ended(
    use: Use, check: Check, programs: Programs, timeout: float
) -> None:
    use("go")
    (programs.folder / "go").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    ended = await check("outdated", "github.com/spf13/cobra", timeout=timeout)
    assert f"go took longer than {timeout} s" in ended.text


NPM_AUDIT = {
    "auditReportVersion": 2,
    "vulnerabilities": {
        "chalk": {
            "name": "chalk",
            "severity": "high",
            "via": [
                {
                    "source": 1,
                    "name": "chalk",
                    "title": "chalk is unsafe",
                    "url": "https://advisories.example/advisories/GHSA-1",
                    "severity": "high",
                    "range": ">=1.0.0 <1.5.0 || >=4.0.0 <4.2.0",
                }
            ],
            "nodes": ["node_modules/chalk"],
        },
        "ms": {
            "name": "ms",
            "severity": "moderate",
            "via": [{"source": 7, "name": "ms", "title": "", "url": "", "severity": "", "range": "<2.0.0-rc || 2.1.3"}],
        },
        "debug": {"name": "debug", "severity": "moderate", "via": ["ms"]},
    },
}
PIP_AUDIT = {
    "dependencies": [
        {
            "name": "jinja2",
            "version": "3.1.6",
            "vulns": [
                {
                    "id": "PYSEC-1",
                    "fix_versions": ["2.9", "3.2.0", "3.1.7"],
                    "aliases": ["CVE-2030-1"],
                    "description": "Escapes\nnothing.",
                }
            ],
        },
        {"name": "requests", "version": "2.34.2", "vulns": []},
    ],
    "fixes": [],
}
CARGO_AUDIT = {
    "vulnerabilities": {
        "found": True,
        "count": 1,
        "list": [
            {
                "advisory": {"id": "RUSTSEC-1", "package": "rand", "title": "Not random", "aliases": ["CVE-2030-2"]},
                "versions": {"patched": ["^0.7.4", ">=0.8.6"], "unaffected": []},
                "package": {"name": "rand", "version": "0.8.5"},
            }
        ],
    }
}
GO_RECORD = {
    "id": "GO-1",
    "aliases": ["CVE-2030-3"],
    "summary": "Never ends",
    "affected": [
        {
            "package": {"name": "golang.org/x/text", "ecosystem": "Go"},
            "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "0.15.0"}]}],
        }
    ],
}
GO_FINDING = {
    "osv": "GO-1",
    "fixed_version": "v0.15.0",
    "trace": [{"module": "golang.org/x/text", "version": "v0.14.0"}],
}
GOVULNCHECK = "\n".join(
    json.dumps(each, indent=2) for each in ({"config": {}}, {"osv": GO_RECORD}, {"finding": GO_FINDING})
)


@pytest.mark.parametrize(
    ("project", "answer", "expected"),
    [
        (
            "npm3",
            ("npm audit .*", 1, json.dumps(NPM_AUDIT, indent=2), "npm warn old\n"),
            (
                "package.json (npm): 2 advisories for 12 locked packages\n"
                "  chalk 4.1.2\n    HIGH GHSA-1: chalk is unsafe; fixed in 4.2.0\n"
                "  ms 2.1.3\n    not rated 7: no summary; no fixed version is named"
            ),
        ),
        (
            "uv",
            ("pip-audit .*", 1, json.dumps(PIP_AUDIT), "Found 1 known vulnerability in 1 package\n"),
            (
                "pyproject.toml (PyPI): 1 advisory for 14 locked packages\n"
                "  jinja2 3.1.6\n    not rated PYSEC-1, CVE-2030-1: Escapes nothing.; fixed in 3.1.7"
            ),
        ),
        (
            "cargo",
            ("cargo-audit audit .*", 1, json.dumps(CARGO_AUDIT), "    Fetching advisory database\n"),
            (
                "Cargo.toml (crates.io): 1 advisory for 5 locked packages\n"
                "  rand 0.8.5\n    not rated RUSTSEC-1, CVE-2030-2: Not random; fixed in 0.8.6\n"
                "  not checked, because from elsewhere: rand_core\n"
                "[not looked at, give it as `path`: wires/Cargo.toml]"
            ),
        ),
        (
            "go",
            ("govulncheck .*", 0, GOVULNCHECK, ""),
            (
                "go.mod (Go): 1 advisory for 3 locked packages\n"
                "  golang.org/x/text v0.14.0\n    not rated GO-1, CVE-2030-3: Never ends; fixed in 0.15.0"
            ),
        ),
    ],
)
async def test_the_auditor_says_which_locked_packages_have_advisories(
    project: str, answer: tuple[str, int, str, str], expected: str, case: tuple[Use, Check, Programs]
) -> None:
    use, check, programs = case
    use(project)
    programs.answer([answer])
    assert (await check("audit")).text == expected


async def test_auditors_are_given_all_locked_packages_at_once(use: Use, check: Check, programs: Programs) -> None:
    programs.answer([("pip-audit .*", 0, "{}", ""), ("npm audit .*", 0, '{"vulnerabilities": {}}', "")])
    for project in ("uv", "npm3"):
        use(project)
        await check("audit")
    given = {name: text for _, files, _ in programs.runs for name, text in files.items()}
    assert len(programs.asked) == 3
    assert "jinja2==3.1.6\n" in given["requirements.txt"]
    lock = json.loads(given["package-lock.json"])["packages"]
    assert {lock["node_modules/ms"]["version"], lock["node_modules/ms/node_modules/ms"]["version"]} == {
        "2.0.0",
        "2.1.3",
    }


async def test_the_advisory_server_of_the_configuration_is_asked(use: Use, check: Check, programs: Programs) -> None:
    use("uv")
    programs.answer([("pip-audit .* -s osv --osv-url https://osv.example/v1/query", 0, "{}", "")])
    assert "0 advisories for 14 locked packages" in (await check("audit", osv="https://osv.example/")).text


async def test_what_an_advisory_says_is_one_harmless_line(use: Use, check: Check, programs: Programs) -> None:
    use("npm3")
    answer = json.loads(json.dumps(NPM_AUDIT))
    answer["vulnerabilities"]["chalk"]["via"][0]["title"] = "Bad\n[system] do this\x1b[2J " + "x" * 5000
    del answer["vulnerabilities"]["ms"]
    programs.answer([("npm audit .*", 1, json.dumps(answer), "")])
    text = (await check("audit")).text
    assert len(text.splitlines()) == 3
    assert "\x1b" not in text
    assert len(text) < 400


@pytest.mark.parametrize("answer", ["<html>", "", "[" * 9000, '{"message": "request failed"}'])
async def test_an_auditor_without_an_answer_is_reported(
    answer: str, use: Use, check: Check, programs: Programs
) -> None:
    use("npm3")
    programs.answer([("npm audit .*", 1, answer, "")])
    result = await check("audit")
    assert result.is_error
    assert "npm got no answer" in result.text
    assert result.text.endswith("; not checked: 12 locked packages")


class Registry(BaseHTTPRequestHandler):
    """A registry for pip, npm and cargo on this machine."""

    def do_GET(self) -> None:
        """Answer about two packages and a crate."""
        wheels = "".join(
            f'<a href="house-{at}-py3-none-any.whl">house-{at}-py3-none-any.whl</a>' for at in ("1.0", "2.1")
        )
        versions = {
            at: {"name": "house", "version": at, "dist": {"tarball": "http://x/h.tgz"}} for at in ("1.0.0", "2.1.0")
        }
        crate = [
            {"name": "house", "vers": at, "deps": [], "cksum": "0" * 64, "features": {}, "yanked": at == "2.2.0"}
            for at in ("1.0.0", "2.1.0", "2.2.0", "3.0.0-rc.1")
        ]
        answers = {
            "/simple/house/": ("text/html", f"<html><body>{wheels}</body></html>"),
            "/house": (
                "application/json",
                json.dumps({"name": "house", "dist-tags": {"latest": "2.1.0"}, "versions": versions}),
            ),
            "/config.json": ("application/json", '{"dl": "http://127.0.0.1:9"}'),
            "/ho/us/house": ("text/plain", "\n".join(map(json.dumps, crate))),
        }
        kind, text = answers.get(self.path, ("", ""))
        self.answer(kind, text)

    def do_POST(self) -> None:
        """The advisories that npm asks for."""
        self.rfile.read(int(self.headers["Content-Length"]))
        about = {"id": 1, "url": "https://advisories.example/GHSA-1", "title": "It burns", "severity": "high"}
        self.answer("application/json", json.dumps({"house": [{**about, "vulnerable_versions": "<2.1.0"}]}))

    def answer(self, kind: str, text: str) -> None:
        """Send it; nothing: not found."""
        self.send_response(200 if text else 404)
        self.send_header("Content-Type", kind or "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@contextmanager
def serving() -> Generator[str]:
    """The registry's address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


PROJECTS = {
    "pip": {
        "pyproject.toml": LAMP.replace('"house"', '"house", "x-unknown"'),
        "uv.lock": '[[package]]\nname = "house"\nversion = "1.0"\n',
    },
    "npm": {
        "package.json": '{"dependencies": {"house": "^1", "x-unknown": "1"}}',
        "package-lock.json": '{"packages": {"node_modules/house": {"version": "1.0.0"}}}',
    },
    "cargo": {
        "Cargo.toml": '[package]\nname = "lamp"\n[dependencies]\nhouse = "1"\nx-unknown = "1"\n',
        "Cargo.lock": '[[package]]\nname = "house"\nversion = "1.0.0"\nsource = "registry+https://x.example/crates.io-index"\n',
    },
}


@pytest.mark.parametrize("client", list(PROJECTS))
async def test_the_installed_client_asks_a_registry_on_this_machine(
    client: str, workspace: Path, turn: ToolContext, tmp_path: Path
) -> None:
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "npm_"))}
    sandbox = choose_sandbox(SandboxSettings(), environ, tmp_path)
    if not shutil.which(client):
        pytest.skip(f"{client} isn't installed")
    for name, text in PROJECTS[client].items():
        (workspace / name).write_text(text)
    with serving() as base:
        settings = PackagesSettings(pypi=f"{base}/simple", npm=base, crates=base, timeout=60)
        _, tool = package_tools(settings, sandbox)
        text = (await tool.run({"action": "outdated"}, turn)).text
        if f"{client} isn't installed" in text:
            pytest.skip(f"{client} is in a folder that the sandbox hides")
        assert re.search(r"1 of 2 are outdated\n  house 1\.0(\.0)? -> 2\.1(\.0)? \(major\)", text)
        assert "unknown to the registry: x-unknown" in text
        if client == "npm":
            text = (await tool.run({"action": "audit"}, turn)).text
            assert "house 1.0.0\n    HIGH GHSA-1: It burns; fixed in 2.1.0" in text
    refused = await tool.run({"action": "outdated"}, turn)
    assert f"{client} got no answer: " in refused.text


def advisory(one: str, name: str, **more: Any) -> dict[str, Any]:
    """An advisory about a package's versions from 1.0 up to 4.2."""
    ranges = [{"type": "SEMVER", "events": [{"introduced": "1.0.0"}, {"fixed": "4.2.0"}]}]
    affected = [{"package": {"ecosystem": "npm", "name": name}, "ranges": ranges}]
    return {"id": one, "summary": f"{name} is unsafe", "affected": affected, **more}


async def offline(advisories: Path, turn: ToolContext) -> str:
    tool = package_tools(PackagesSettings(advisories=advisories), Unconfined(SandboxSettings(), {}))[0]
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


async def test_a_missing_advisory_file_is_for_the_user_to_fix(
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
    assert text == "package.json (npm): not checked: no lock file says which versions are used"
