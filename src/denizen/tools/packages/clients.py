"""Asks registries and advisory databases through the ecosystems' own clients, which know mirrors and credentials.

They run where commands do, in the sandbox and without secrets, but in an empty folder: what a repository says to them
in its own configuration doesn't count.
"""

import asyncio
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from denizen.config.settings import PackagesSettings
from denizen.errors import DenizenError
from denizen.ports import Sandbox
from denizen.tools.files.text import printable
from denizen.tools.packages.advisories import Advisory, advisory, read_record
from denizen.tools.packages.graph import Ecosystem, Package, Project, parse_version, table, tables, text, words
from denizen.tools.programs.process import output_of
from denizen.trusted.programs import trusted_environ

LARGEST = 20_000_000  # bytes of an answer
_AT_ONCE = 4
_MOST_FAILURES = 3  # after so many nothing more is asked
_AUDIT = 10  # how many times the time for one package an audit may take
_CRATE = {"Cargo.toml": '[package]\nname = "check"\nversion = "0.0.0"\n[lib]\npath = "lib.rs"\n', "lib.rs": ""}
"""A package to which `cargo add` could add a dependency: `cargo info` knows no mirrors, and names pre-releases."""


@dataclass(frozen=True, slots=True)
class _LatestCommand:
    """How to ask for the latest release of NAME: what is a name and no option or address, and what answers mean."""

    command: str
    name: str
    answer: str
    unknown: str
    files: Mapping[str, str] = field(default_factory=dict)


_LATEST: Final[Mapping[Ecosystem, _LatestCommand]] = {
    "PyPI": _LatestCommand(
        "pip index versions -vv --retries 0 --disable-pip-version-check NAME",
        r"[A-Za-z0-9][\w.-]*",
        r"^\S+ \(([\w.!+-]+)\)$",
        r"(?s)\A(?!.*Could not fetch URL \S+ (?!404)).*No matching distribution",
    ),
    "npm": _LatestCommand(
        "npm view --json --fetch-retries=0 NAME version",
        r"(?:@[\w.~-]+/)?[A-Za-z0-9_~][\w.~-]*",
        r'^"(.+)"$',
        r'"E404"',
    ),
    "crates.io": _LatestCommand(
        "cargo add --dry-run NAME",
        r"[A-Za-z][\w-]*",
        r"Adding \S+ v(\S+) to",
        r"could not be found",
        _CRATE,
    ),
    "Go": _LatestCommand(
        "go list -m -json NAME@latest",
        r"[A-Za-z0-9][\w~-]*(?:[./][\w~-]+)*",
        r'"Version": "([^"]+)"',
        r"not found|404|410|no matching versions|unrecognized import path",
    ),
}
_VERSION = re.compile(r"[\w.!+-]+")


class NoAnswer(DenizenError):
    """A client isn't installed, or got no answer; its text says why."""


class Clients:
    """The clients of all ecosystems, for one call of a tool."""

    def __init__(self, sandbox: Sandbox, settings: PackagesSettings, workspace: Path) -> None:
        self._sandbox = sandbox
        self._workspace = workspace
        self._settings = settings
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self._failures: dict[Ecosystem, list[NoAnswer]] = {}
        named = {"PIP_INDEX_URL": settings.pypi, "npm_config_registry": settings.npm, "GOPROXY": settings.go}
        self._environ = {"GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "CARGO_NET_RETRY": "0"}
        self._environ |= {key: address for key, address in named.items() if address}

    async def default_registry(self, ecosystem: Ecosystem) -> str:
        """The host that the client asks when nobody has configured another; empty: somebody has, or it isn't known.

        Packages that are locked from another one are not to be named to it.
        """
        if ecosystem == "crates.io":
            return ecosystem  # Cargo.lock names other registries, and only those
        if ecosystem == "npm" and not self._settings.npm:
            _, output, _ = await self._run(["npm", "config", "list"])
            if not re.search(r"^registry = ", output, re.MULTILINE):
                _, output, _ = await self._run(["npm", "config", "get", "registry"])
                return urlsplit(output.strip()).netloc
        if ecosystem == "PyPI" and not self._settings.pypi:
            _, output, _ = await self._run(["pip", "config", "list"])
            if not re.search(r"\.index-url=", output):
                _, output, _ = await self._run(["pip", "index", "--help"])
                found = re.search(r"Base URL.*?\(default\s+(\S+?)\)", output, re.DOTALL)
                return urlsplit(found[1]).netloc if found else ""
        return ""

    async def latest(self, ecosystem: Ecosystem, name: str) -> str:
        """The latest release; empty for a package that the registry doesn't know. Raises NoAnswer."""
        how = _LATEST[ecosystem]
        if not re.fullmatch(how.name, name):
            return ""
        command = [word.replace("NAME", name) for word in how.command.split()]
        if ecosystem == "crates.io" and (mirror := self._settings.crates):
            source = f'source.mirror.registry="sparse+{mirror.removeprefix("sparse+").rstrip("/")}/"'
            command[1:1] = ["--config", 'source.crates-io.replace-with="mirror"', "--config", source]
        failures = self._failures.setdefault(ecosystem, [])
        async with self._turn:
            if len(failures) >= _MOST_FAILURES:
                raise failures[0]
            try:
                status, output, errors = await self._run(command, how.files)
                if status == 0 and (found := re.search(how.answer, f"{output}\n{errors}", re.MULTILINE)):
                    return printable(found[1])[:60]
                if not re.search(how.unknown, f"{output}\n{errors}"):
                    raise _failure(command[0], errors, output)
            except NoAnswer as failure:
                failures.append(failure)
                raise
        return ""

    async def audit(self, project: Project, packages: Sequence[Package]) -> list[tuple[Package, Advisory]]:
        """The advisories that concern the packages, as the ecosystem's auditor says. Raises NoAnswer."""
        wanted = [each for each in packages if can_be_asked(project.ecosystem, each)]
        if not wanted:
            return []
        match project.ecosystem:
            case "PyPI":
                return await self._audit_python(wanted)
            case "npm":
                return await self._audit_npm(wanted)
            case "crates.io":
                return await self._audit_cargo(wanted, project.lock.text)
            case "Go":
                return await self._audit_go(wanted)

    async def _audit_python(self, packages: Sequence[Package]) -> list[tuple[Package, Advisory]]:
        command = ["pip-audit", "-r", "requirements.txt", "--no-deps", "--disable-pip", "-f", "json"]
        command += ["--progress-spinner", "off", "--desc", "on", "--aliases", "on"]
        if self._settings.osv:
            command += ["-s", "osv", "--osv-url", f"{self._settings.osv.rstrip('/')}/v1/query"]
        named = {(each.name, each.version): each for each in packages}
        # several versions of a package are no valid requirements: one is asked about after the other
        found: list[tuple[Package, Advisory]] = []
        for some in _apart(packages):
            lines = "".join(f"{each.name}=={each.version}\n" for each in some)
            answer = await self._json(command, {"requirements.txt": lines})
            for each in tables(table(answer).get("dependencies")):
                package = named.get((text(each.get("name")), text(each.get("version"))))
                if package is None:
                    continue
                for one in tables(each.get("vulns")):
                    about = one.get("description")
                    more = {"aliases": words(one.get("aliases")), "fixes": words(one.get("fix_versions"))}
                    found.append((package, advisory(package, "PyPI", one.get("id"), summary=about, **more)))
        return found

    async def _audit_npm(self, packages: Sequence[Package]) -> list[tuple[Package, Advisory]]:
        from univers.version_range import NpmVersionRange

        entries: dict[str, Any] = {"": {"name": "check"}}
        for depth, some in enumerate(_apart(packages), 1):  # a second version goes into the first one's node_modules
            entries |= {"/".join([f"node_modules/{each.name}"] * depth): {"version": each.version} for each in some}
        lock = msgspec.json.encode({"name": "check", "lockfileVersion": 3, "packages": entries}).decode()
        command = ["npm", "audit", "--json", "--package-lock-only", "--fetch-retries=0"]
        answer = await self._json(command, {"package-lock.json": lock})
        if "vulnerabilities" not in table(answer):
            raise _failure("npm", text(table(answer).get("message")) or text(table(answer, "error").get("summary")))
        found: list[tuple[Package, Advisory]] = []
        for name, each in table(answer, "vulnerabilities").items():
            about = [one for one in tables(table(each).get("via")) if isinstance(one.get("source"), int)]
            for package in packages:
                for one in about if package.name == name else ():
                    affected = text(one.get("range"))
                    try:
                        concerned = parse_version("npm", package.version) in NpmVersionRange.from_native(affected)
                    except ValueError:
                        concerned = True
                    if concerned:
                        identity = text(one.get("url")).rpartition("/")[2] or str(one["source"])
                        fixes = re.findall(r"<\s*(\d[\w.+-]*)", affected)
                        more = {"severity": one.get("severity"), "summary": one.get("title"), "fixes": fixes}
                        found.append((package, advisory(package, "npm", identity, **more)))
        return found

    async def _audit_cargo(self, packages: Sequence[Package], lock: str) -> list[tuple[Package, Advisory]]:
        named = {(each.name, each.version): each for each in packages}
        answer = await self._json(["cargo-audit", "audit", "--json", "--file", "Cargo.lock"], {"Cargo.lock": lock})
        found: list[tuple[Package, Advisory]] = []
        for each in tables(table(answer, "vulnerabilities").get("list")):
            about, concerned = table(each, "advisory"), table(each, "package")
            fixes = [one for line in words(table(each, "versions").get("patched")) for one in _VERSION.findall(line)]
            more = {"aliases": words(about.get("aliases")), "summary": about.get("title"), "fixes": fixes}
            if package := named.get((text(concerned.get("name")), text(concerned.get("version")))):
                found.append((package, advisory(package, "crates.io", about.get("id"), **more)))
        return found

    async def _audit_go(self, packages: Sequence[Package]) -> list[tuple[Package, Advisory]]:
        named = {(each.name, each.version): each for each in packages}
        requires = "".join(f"\t{each.name} {each.version}\n" for each in packages)
        files = {"go.mod": f"module check\n\ngo 1.21\n\nrequire (\n{requires})\n"}
        records: dict[str, dict[str, Any]] = {}
        found: dict[tuple[str, str], tuple[Package, Advisory]] = {}
        for message in _objects(await self._output(["govulncheck", "-json", "-scan", "module"], files)):
            if record := table(message, "osv"):
                records[text(record.get("id"))] = record
            finding = table(message, "finding")
            for each in tables(finding.get("trace"))[:1]:
                identity, module = text(finding.get("osv")), text(each.get("module"))
                if package := named.get((module, text(each.get("version")))):
                    record = records.get(identity, {"id": identity})
                    affected = [
                        one for one in tables(record.get("affected")) if table(one, "package").get("name") == module
                    ]
                    found[identity, module] = package, read_record(record, affected, "Go", package)
        return [*found.values()]

    async def _json(self, command: Sequence[str], files: Mapping[str, str]) -> Any:
        output = await self._output(command, files)
        try:
            return msgspec.json.decode(output)
        except (msgspec.DecodeError, RecursionError) as error:
            raise _failure(command[0], f"its answer isn't JSON: {error}") from error

    async def _output(self, command: Sequence[str], files: Mapping[str, str]) -> str:
        """What an auditor writes; its exit status says whether it found something."""
        _, output, errors = await self._run(command, files, patience=_AUDIT)
        if not output.lstrip().startswith(("{", "[")):
            raise _failure(command[0], errors, output)
        return output

    async def _run(
        self, command: Sequence[str], files: Mapping[str, str] | None = None, *, patience: int = 1
    ) -> tuple[int, str, str]:
        """The exit status of a command in a folder with these files alone, its output, and its errors.

        Raises NoAnswer where it isn't installed, or takes too long.
        """

        def prepare(folder: Path) -> None:
            (folder / "errors").touch()  # it may be ended before it has begun
            for name, content in (files or {}).items():
                (folder / name).write_text(content, "utf-8")

        def errors_in(folder: Path) -> str:
            with (folder / "errors").open(encoding="utf-8", errors="replace") as file:
                return file.read(LARGEST)

        seconds = self._settings.timeout * patience
        try:
            with tempfile.TemporaryDirectory(prefix="denizen-") as name:
                folder = Path(name)
                await asyncio.to_thread(prepare, folder)
                line = ["sh", "-c", 'exec 2>errors; exec "$@"', "sh", *command]
                wrapped = await asyncio.to_thread(self._sandbox.wrap, line, workspace=folder, network=True)
                environ = trusted_environ(wrapped.environ, self._workspace) | self._environ
                wrapped = msgspec.structs.replace(wrapped, environ=environ)
                status, output = await output_of(wrapped, folder, seconds=seconds, most=LARGEST)
                errors = await asyncio.to_thread(errors_in, folder)
        except OSError as error:
            raise NoAnswer(f"{command[0]} can't be run: {error}") from error
        if status is None:
            raise NoAnswer(f"{command[0]} took longer than {seconds:g} s")
        if status == 127:
            raise NoAnswer(f"{command[0]} isn't installed: only it can be asked")
        return status, output.decode(errors="replace"), errors


def can_be_asked(ecosystem: Ecosystem, package: Package) -> bool:
    """Whether name and version are such that a client takes them for no more than that."""
    is_name = re.fullmatch(_LATEST[ecosystem].name, package.name) is not None
    return is_name and bool(_VERSION.fullmatch(package.version)) and bool(parse_version(ecosystem, package.version))


def _apart(packages: Iterable[Package]) -> list[list[Package]]:
    """The packages in groups in which each name comes once."""
    groups: list[dict[str, Package]] = []
    for package in packages:
        group = next((each for each in groups if package.name not in each), None)
        if group is None:
            groups.append({package.name: package})
        else:
            group[package.name] = package
    return [[*group.values()] for group in groups]


def _objects(output: str) -> Iterator[dict[str, Any]]:
    """The JSON objects that follow each other in an output."""
    import json

    decoder, at = json.JSONDecoder(), 0
    output = output.strip()
    try:
        while at < len(output):
            found, at = decoder.raw_decode(output, at)
            yield table(found)
            while output[at : at + 1].isspace():
                at += 1
    except (ValueError, RecursionError) as error:
        raise _failure("govulncheck", f"its answer isn't JSON: {error}") from error


def _failure(program: str, *outputs: str) -> NoAnswer:
    """A failure with the line that says most about it of what the program wrote, else its last one."""
    lines = [line.strip() for each in outputs for line in each.splitlines() if line.strip()]
    for pattern in ("could not fetch", "failed|error: ", ""):
        if telling := [line for line in lines if re.search(pattern, line, re.IGNORECASE)]:
            return NoAnswer(f"{program} got no answer: {printable(telling[0 if pattern else -1])[:300]}")
    return NoAnswer(f"{program} got no answer, and said nothing")
