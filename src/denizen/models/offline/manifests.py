"""Which dependencies a manifest declares: `pyproject.toml`, `package.json`, `Cargo.toml`, `go.mod` and their like."""

import ast
import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

Declared = dict[str, list[str]]
"""What it declares, by what for: empty: to run; else `dev`, `optional: NAME` and so on."""

Reader = Callable[[str], Declared]


def reader_of(path: str) -> Reader | None:
    """What reads that file's format; None where it isn't a manifest. It raises ValueError for a broken file."""
    name = PurePosixPath(path).name
    return _READERS.get(name) or next((read for pattern, read in _PATTERNS if pattern.fullmatch(name)), None)


def _pyproject(text: str) -> Declared:
    data = tomllib.loads(text)
    project, poetry = _table(data, "project"), _table(data, "tool", "poetry")
    found = {"": _strings(project.get("dependencies")) + _versions(_table(poetry, "dependencies"), skip={"python"})}
    for name, wanted in _table(project, "optional-dependencies").items():
        found[f"optional: {name}"] = _strings(wanted)
    for name, wanted in _table(data, "dependency-groups").items():
        found[f"group: {name}"] = _strings(wanted)
    for name, group in _table(poetry, "group").items():
        found[f"group: {name}"] = _versions(_table(group, "dependencies"))
    found["group: dev"] = found.get("group: dev", []) + _versions(_table(poetry, "dev-dependencies"))
    return found


def _requirements(text: str) -> Declared:
    lines = (re.split(r"\s#|\s--hash|\s\\", line.strip())[0].strip() for line in text.splitlines())
    return {"": [line for line in lines if line and not line.startswith(("#", "-", "[", "<"))]}


def _setup_cfg(text: str) -> Declared:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise ValueError(str(error)) from error
    found = {"": _lines(parser.get("options", "install_requires", fallback=""))}
    if parser.has_section("options.extras_require"):
        found |= {f"optional: {name}": _lines(wanted) for name, wanted in parser.items("options.extras_require")}
    return found


def _setup_py(text: str) -> Declared:
    """Its literal `install_requires`; what the script computes isn't seen."""
    try:
        nodes = ast.walk(ast.parse(text))
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"it isn't Python: {error}") from error
    keywords = (keyword for node in nodes if isinstance(node, ast.Call) for keyword in node.keywords)
    lists = [each.value for each in keywords if each.arg == "install_requires" and isinstance(each.value, ast.List)]
    literals = (item.value for found in lists for item in found.elts if isinstance(item, ast.Constant))
    return {"": [value for value in literals if isinstance(value, str)]}


def _pipfile(text: str) -> Declared:
    data = tomllib.loads(text)
    return {"": _versions(_table(data, "packages")), "dev": _versions(_table(data, "dev-packages"))}


def _package_json(text: str) -> Declared:
    data = json.loads(text)
    kinds = {
        "": "dependencies",
        "dev": "devDependencies",
        "peer": "peerDependencies",
        "optional": "optionalDependencies",
    }
    return {what: _versions(_table(data, key)) for what, key in kinds.items()}


def _cargo(text: str) -> Declared:
    data = tomllib.loads(text)
    kinds = {"": "dependencies", "dev": "dev-dependencies", "build": "build-dependencies"}
    found = {what: _versions(_table(data, key)) for what, key in kinds.items()}
    found[""] += _versions(_table(data, "workspace", "dependencies"))
    return found


def _go_mod(text: str) -> Declared:
    blocks = re.findall(r"^require\s*\(([^)]*)\)", text, re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    lines += re.findall(r"^require\s+([^\s(].*)$", text, re.MULTILINE)
    direct = [_before(line, "//") for line in lines if "// indirect" not in line]
    return {"": [line for line in direct if line], "indirect": [_before(x, "//") for x in lines if "// indirect" in x]}


def _composer(text: str) -> Declared:
    data = json.loads(text)
    return {"": _versions(_table(data, "require"), skip={"php"}), "dev": _versions(_table(data, "require-dev"))}


def _matches(pattern: str) -> Reader:
    """A reader for formats that are programs or too rich to parse: it finds what is written plainly."""
    found = re.compile(pattern, re.MULTILINE)
    return lambda text: {"": [" ".join(part for part in match.groups() if part) for match in found.finditer(text)]}


def _indented(*keys: str) -> Reader:
    """A reader for what is indented below some keys of a YAML file; a list, or names with versions."""
    line = re.compile(r"^[ \t]+(?:- *)?([\w@./-]+)[ \t]*[:=]*[ \t]*[\"']?([^\"'#\n]*)")

    def read(text: str) -> Declared:
        found: Declared = {"": []}
        inside = False
        for each in text.splitlines():
            if each[:1].strip():
                inside = each.split(":")[0] in keys
            elif inside and (match := line.match(each)):
                found[""].append(" ".join(match.groups()).strip())
        return found

    return read


_READERS: Final[Mapping[str, Reader]] = {
    "pyproject.toml": _pyproject,
    "setup.cfg": _setup_cfg,
    "setup.py": _setup_py,
    "Pipfile": _pipfile,
    "environment.yml": _indented("dependencies"),
    "package.json": _package_json,
    "Cargo.toml": _cargo,
    "go.mod": _go_mod,
    "composer.json": _composer,
    "Gemfile": _matches(r"^\s*gem\s+[\"']([^\"']+)[\"'](?:\s*,\s*[\"']([^\"']+)[\"'])?"),
    "pom.xml": _matches(r"<dependency>\s*<groupId>([^<]+)</groupId>\s*<artifactId>([^<]+)</artifactId>"),
    "build.gradle": _matches(r"^\s*(?:implementation|api|compileOnly|runtimeOnly)[\s(]+[\"']([^\"']+)[\"']"),
    "build.gradle.kts": _matches(r"^\s*(?:implementation|api|compileOnly|runtimeOnly)[\s(]+[\"']([^\"']+)[\"']"),
    "mix.exs": _matches(r"\{\s*:(\w+)\s*,\s*\"([^\"]+)\""),
    "Package.swift": _matches(r"\.package\([^)]*url:\s*\"([^\"]+)\""),
    "pubspec.yaml": _indented("dependencies", "dev_dependencies"),
}
_PATTERNS: Final[tuple[tuple[re.Pattern[str], Reader], ...]] = (
    (re.compile(r"requirements.*\.(txt|in)|constraints.*\.txt"), _requirements),
    (
        re.compile(r".*\.(cs|fs|vb)proj"),
        _matches(r"<PackageReference\s+Include=\"([^\"]+)\"(?:\s+Version=\"([^\"]+)\")?"),
    ),
    (re.compile(r".*\.gemspec"), _matches(r"\.add(?:_runtime)?_dependency[\s(]+[\"']([^\"']+)[\"']")),
)


def _table(data: Any, *keys: str) -> Mapping[str, Any]:
    """The table there; empty where there is none."""
    for key in keys:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data if isinstance(data, Mapping) else {}


def _strings(wanted: Any) -> list[str]:
    return [each for each in wanted if isinstance(each, str)] if isinstance(wanted, list) else []


def _versions(table: Mapping[str, Any], skip: Iterable[str] = ()) -> list[str]:
    """`name version` of each entry; a version may be in a table of its own."""
    return [f"{name} {_version(value)}".strip() for name, value in table.items() if name not in skip]


def _version(value: Any) -> str:
    if isinstance(value, Mapping):
        value = value.get("version", "")
    return value if isinstance(value, str) else ""


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _before(line: str, mark: str) -> str:
    return line.partition(mark)[0].strip()
