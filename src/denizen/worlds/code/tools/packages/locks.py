"""Reads lock files: those of uv, Poetry, PDM, Pipenv and pip, npm, pnpm and Yarn, Cargo, and go.mod."""

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from denizen.worlds.code.tools.packages.graph import (
    Dependency,
    LockFile,
    Manifest,
    Package,
    link,
    table,
    tables,
    text,
    words,
)
from denizen.worlds.code.tools.packages.manifests import python_name, requirement

_MAX_DEPTH = 20  # levels of a YAML file
_PIN = re.compile(r"={2,3}\s*([^\s,;*]+)$")
_SOURCE_KEYS = frozenset({"git", "hg", "vcs", "path", "file", "directory", "url", "archive"})
"""How an entry says that its package is from no index."""
_VIA = re.compile(r"^\s*#\s+(?:via\s+)?(\S.*)$")

_NEEDS = ("dependencies", "optionalDependencies", "peerDependencies")
_KINDS = {"": "dependencies", "dev": "devDependencies", "optional": "optionalDependencies"}
_INSIDE = "node_modules/"
_PNPM_KEY = re.compile(r"/?(@?[^@/(]+(?:/[^@/(]+)?)[@/]([^(_]+)")
_YARN_1 = "# yarn lockfile v1"
_YARN_HEADING = re.compile(r"^([^\s#].*):$", re.MULTILINE)
_YARN_PAIR = re.compile(r"^( +)(\"[^\"\n]*\"|[^\s:#\"]+) ([^\s].*)$", re.MULTILINE)
_YARN_LOCAL = ("workspace:", "link:", "portal:", "file:", "patch:", "git", "http")


def read_uv(source: str) -> LockFile:
    """uv.lock; the project itself is among its packages, with its groups."""
    own: dict[str, list[Dependency]] = {}
    found: list[tuple[Package, list[tuple[str, str]]]] = []
    for each in tables(tomllib.loads(source).get("package")):
        origin = table(each, "source")
        if "virtual" in origin or "editable" in origin:  # the project itself, or a member of its workspace
            groups = [("", each.get("dependencies"))]
            groups += [(f"optional: {name}", group) for name, group in table(each, "optional-dependencies").items()]
            groups += [(name, group) for name, group in table(each, "dev-dependencies").items()]
            folder = (text(origin.get("virtual")) or text(origin.get("editable"))).removeprefix(".")
            own[folder] = [
                Dependency(name, "", kind, f"{name} {version}")
                for kind, group in groups
                for name, version in _python_needs(group)
            ]
        else:
            extras = [need for group in table(each, "optional-dependencies").values() for need in _python_needs(group)]
            registry = text(origin.get("registry")) if "registry" in origin or not origin else None
            found.append((_python_package(each, registry), [*_python_needs(each.get("dependencies")), *extras]))
    return LockFile(link(found), own)


def read_poetry(source: str) -> LockFile:
    """poetry.lock; dependencies are a table of names."""
    found: list[tuple[Package, list[tuple[str, str]]]] = []
    for each in tables(tomllib.loads(source).get("package")):
        origin = table(each, "source")
        registry = text(origin.get("url")) if origin.get("type", "legacy") == "legacy" else None
        needs = [(python_name(name), "") for name in table(each, "dependencies")]
        found.append((_python_package(each, registry), needs))
    return LockFile(link(found))


def read_pdm(source: str) -> LockFile:
    """pdm.lock; dependencies are requirements. A package comes again for each set of its extras."""
    needs: dict[str, list[str]] = {}
    packages: dict[str, Package] = {}
    for each in tables(tomllib.loads(source).get("package")):
        package = _python_package(each, None if _SOURCE_KEYS.intersection(each) else "")
        packages[package.name] = package
        lines = words(each.get("dependencies"))
        names = [wanted.name for line in lines for wanted in requirement(line) if wanted.name != package.name]
        needs.setdefault(package.name, []).extend(names)
    return LockFile(link((package, [(need, "") for need in needs[name]]) for name, package in packages.items()))


def read_pylock(source: str) -> LockFile:
    """pylock.toml (PEP 751); whether it says who brings what is up to the tool that wrote it."""
    found = [
        (
            _python_package(each, None if _SOURCE_KEYS.intersection(each) else text(each.get("index"))),
            _python_needs(each.get("dependencies")),
        )
        for each in tables(tomllib.loads(source).get("packages"))
    ]
    return LockFile(link(found), graph=any(needs for _, needs in found))


def read_pipfile_lock(source: str) -> LockFile:
    """Pipfile.lock, which doesn't say who brings what; the first of its sources is the usual one."""
    data = table(msgspec.json.decode(source))
    sources = {text(each.get("name")): text(each.get("url")) for each in tables(table(data, "_meta").get("sources"))}
    usual = next(iter(sources), "pypi")
    packages: list[Package] = []
    for name, each in [*table(data, "default").items(), *table(data, "develop").items()]:
        index = text(table(each).get("index")) or usual
        registry = (
            None if _SOURCE_KEYS.intersection(table(each)) else sources.get(index, "" if index == usual else index)
        )
        packages.append(Package(python_name(name), text(each).removeprefix("=="), registry=registry))
    return LockFile(link((package, []) for package in packages), graph=False)


def read_requirements(source: str) -> tuple[Manifest, LockFile]:
    """A requirements file as a manifest and, as far as versions are pinned, as a lock file.

    Where comments say via whom a package came (as pip-compile and uv write them), only the others are asked for.
    """
    wanted: list[Dependency] = []
    vias: dict[str, list[str]] = {}  # each package with what its comments say it came via
    name = ""
    for line in source.replace("\\\n", " ").splitlines():
        plain = re.split(r"(?:^|\s)#|\s--", line.strip())[0].strip()  # without options, comments and hashes
        found = [] if not plain or plain.startswith(("-", "[", "<")) else [*requirement(plain)]
        wanted += found
        if found and line[:1].strip():
            name = found[0].name
            vias.setdefault(name, [])
        elif name and (said := _VIA.match(line)) and said[1] != "via":
            vias[name] += [who.strip() for who in said[1].split(",")]
    packages = {  # of a package, who brings it; the others name files that ask for it
        name: [python_name(who) for who in via if not (who.startswith("-") or "(" in who or "/" in who)]
        for name, via in vias.items()
    }
    direct = {name for name, via in vias.items() if not via or len(packages[name]) < len(via)}
    pins = {each.name: pin[1] for each in wanted if (pin := _PIN.match(each.spec))}
    found_pins = [
        (Package(pin, version), [(child, "") for child, parents in packages.items() if pin in parents])
        for pin, version in pins.items()
    ]
    lock = LockFile(link(found_pins), graph=any(packages.values()))
    return Manifest("", "", [each for each in wanted if each.name in direct]), lock


def _python_package(entry: Mapping[str, Any], registry: str | None) -> Package:
    return Package(python_name(text(entry.get("name"))), text(entry.get("version")), registry=registry)


def _python_needs(entries: Any) -> list[tuple[str, str]]:
    return [(python_name(text(each.get("name"))), text(each.get("version"))) for each in tables(entries)]


def read_package_lock(source: str) -> LockFile:
    """package-lock.json and npm-shrinkwrap.json, versions 1 to 3.

    Packages are kept by their places in node_modules, which decide who gets which version.
    """
    data = table(msgspec.json.decode(source))
    entries = table(data, "packages")
    waiting: list[tuple[str, dict[str, Any]]] = [] if entries else [("", table(data, "dependencies"))]
    while waiting:  # version 1, where packages lie in one another
        above, inner = waiting.pop()
        for name, entry in inner.items():
            place = f"{above}{_INSIDE}{name}"
            entries[place] = {**table(entry), "dependencies": table(entry, "requires")}
            waiting.append((f"{place}/", table(entry, "dependencies")))
    packages: dict[str, Package] = {}
    own: dict[str, list[Dependency]] = {}
    for place, entry in entries.items():
        if _INSIDE not in place:  # the project there, or the member of its workspace
            own[place] = [
                Dependency(name, text(spec), kind, _npm_place(name, place, entries))
                for kind, key in _KINDS.items()
                for name, spec in table(entry, key).items()
            ]
            continue
        name = text(table(entry).get("name")) or place.rpartition(_INSIDE)[2]
        needs = [key for kind in _NEEDS for need in table(entry, kind) if (key := _npm_place(need, place, entries))]
        version, resolved = text(table(entry).get("version")), text(table(entry).get("resolved"))
        is_elsewhere = not version[:1].isdecimal() or (resolved and not resolved.startswith("http"))
        packages[place] = Package(name, version, list(dict.fromkeys(needs)), None if is_elsewhere else resolved)
    return LockFile(packages, own)


def _npm_place(name: str, at: str, entries: Mapping[str, Any]) -> str:
    """Where a package at `at` finds another: in its own node_modules, else in those above it. Empty: nowhere."""
    while True:
        place = f"{at}/{_INSIDE}{name}".removeprefix("/")
        if place in entries:
            return place
        if not at:
            return ""
        at = at.rpartition(f"/{_INSIDE}")[0] if f"/{_INSIDE}" in at else ""


def read_pnpm(source: str) -> LockFile:
    """pnpm-lock.yaml, versions 5 to 9: packages by name and version, and what each project of the workspace wants."""
    data = _yaml(source)
    details, snapshots = table(data, "packages"), table(data, "snapshots")
    found = {_pnpm_key(key): (key, table(entry)) for key, entry in (snapshots or details).items()}
    packages: dict[str, Package] = {}
    for plain, (key, entry) in found.items():
        name, _, version = plain.rpartition("@")
        needs = [_pnpm_need(each, text(spec)) for kind in _NEEDS[:2] for each, spec in table(entry, kind).items()]
        is_elsewhere = "tarball" in table(details, key, "resolution") or not version[:1].isdecimal()
        registry = None if is_elsewhere else ""
        packages[plain] = Package(name, version, [need for need in needs if need in found], registry)
    own: dict[str, list[Dependency]] = {}
    for place, importer in (table(data, "importers") or {".": data}).items():
        own[place.removeprefix(".")] = [
            Dependency(
                name,
                text(table(each).get("specifier")) or text(table(importer, "specifiers").get(name)),
                kind,
                _pnpm_need(name, text(each)),
            )
            for kind, key in _KINDS.items()
            for name, each in table(importer, key).items()
        ]
    return LockFile(packages, own)


def _pnpm_key(key: str) -> str:
    """`/debug/2.6.9`, `/debug@2.6.9(supports-color@7.2.0)` and `debug@2.6.9` are all `debug@2.6.9`."""
    found = _PNPM_KEY.match(key)
    return f"{found[1]}@{found[2]}" if found else key


def _pnpm_need(name: str, version: str) -> str:
    """The key of a locked package: `2.6.9`, `2.6.9(react@18.2.0)`, or another package's whole key."""
    return _pnpm_key(version if "@" in version.partition("(")[0][1:] or version[:1] == "/" else f"{name}@{version}")


def read_yarn(source: str) -> LockFile:
    """yarn.lock, that of Yarn 1 and that of its successors, which is YAML.

    Packages are found by all that was asked for and led to them: `debug@^2.6.9`, later `debug@npm:^2.6.9`. Yarn has a
    name of its own for the usual registry: the one that most packages are from.
    """
    if _YARN_1 in source[:500]:
        source = _YARN_HEADING.sub(lambda line: '"' + line[1].replace('"', "") + '":', source)
        source = _YARN_PAIR.sub(r"\1\2: \3", source)
    entries = {key: table(entry) for key, entry in _yaml(source).items() if key != "__metadata"}
    asked = {one: key for key in entries for one in key.split(", ")}
    asked |= {f"{name}@{spec}": key for one, key in asked.items() for name, _, spec in [one.partition("@npm:")] if spec}
    registries = {key: text(entry.get("resolved")) for key, entry in entries.items()}
    usual = Counter(urlsplit(each).netloc for each in registries.values()).most_common(1)
    packages: dict[str, Package] = {}
    for key, entry in entries.items():
        if "@workspace:" in key:
            continue
        resolution = text(entry.get("resolution")) or key.partition(", ")[0]
        at = resolution.index("@", 1)
        registry = "" if urlsplit(registries[key]).netloc == usual[0][0] else registries[key]
        needs = [f"{name}@{text(spec)}" for kind in _NEEDS[:2] for name, spec in table(entry, kind).items()]
        packages[key] = Package(
            resolution[:at],
            text(entry.get("version")),
            [asked[need] for need in needs if need in asked],
            None if resolution[at + 1 :].startswith(_YARN_LOCAL) else registry,
        )
    return LockFile(packages, asked=asked)


def _yaml(source: str) -> dict[str, Any]:
    """The file's table, all values as texts. Raises ValueError."""
    import yaml

    loader, depth = getattr(yaml, "CBaseLoader", yaml.BaseLoader), 0
    try:
        for event in yaml.parse(source, loader):  # a deeply nested file would crash the loader, and Denizen
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _MAX_DEPTH:
                raise ValueError("it is nested too deeply")
        return table(yaml.load(source, loader))  # noqa: S506 (this loader makes only texts, lists and tables)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error


def read_cargo_lock(source: str) -> LockFile:
    """Cargo.lock; the crates of the workspace, which have no source, say what they want."""
    found: list[tuple[Package, list[tuple[str, str]]]] = []
    own: dict[str, list[Dependency]] = {}
    for each in tables(tomllib.loads(source).get("package")):
        name, origin = text(each.get("name")), text(each.get("source"))
        # `name`, `name version` or `name version (source)`: as much as distinguishes it from others
        parts = [line.partition(" ") for line in words(each.get("dependencies"))]
        needs = [(need, rest.partition(" ")[0]) for need, _, rest in parts]
        if not origin:
            own[name] = [Dependency(need, "", "", f"{need} {version}") for need, version in needs]
            continue
        is_registry = origin.startswith(("registry+", "sparse+"))
        registry = (origin if "crates.io" not in origin else "") if is_registry else None
        found.append((Package(name, text(each.get("version")), registry=registry), needs))
    return LockFile(link(found), own)


def locked_by_go_mod(manifest: Manifest) -> LockFile:
    """go.mod as the lock file that it is: since Go 1.17 it names all modules of the build, but not who brings what."""
    found = [each for each in manifest.wanted if not each.spec.startswith("path ")]
    return LockFile({each.name: Package(each.name, each.spec) for each in found}, graph=False)
