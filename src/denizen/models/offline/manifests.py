"""Which dependencies a manifest declares: `pyproject.toml`, `package.json`, `Cargo.toml`, `go.mod` and the like."""

import ast
import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

Declared = dict[str, list[str]]
"""The dependencies by purpose: empty: to run; else `dev`, `optional: NAME` and so on."""
Reader = Callable[[str], Declared]

FILES: Final = (
    "{pyproject.toml,setup.cfg,setup.py,Pipfile,environment.yml,requirements*.txt,requirements*.in,package.json,Cargo.toml,go.mod,"
    "composer.json,Gemfile,*.gemspec,pom.xml,build.gradle,build.gradle.kts,mix.exs,Package.swift,pubspec.yaml,*.{cs,fs,vb}proj}"
)
"""A pattern for their names."""


def reader_of(path: str) -> Reader | None:
    """The reader of that file's format; None if it isn't a manifest. It raises ValueError for a broken file."""
    name = PurePosixPath(path).name
    if name in _TABLES:
        return lambda text: _from_tables(text, name)
    return next((read for pattern, read in _OTHERS if re.fullmatch(pattern, name)), None)


_TABLES: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "pyproject.toml": (
        ("project dependencies", ""),
        ("tool poetry dependencies", ""),
        ("project optional-dependencies *", "optional: {}"),
        ("dependency-groups *", "group: {}"),
        ("tool poetry group * dependencies", "group: {}"),
        ("tool poetry dev-dependencies", "group: dev"),
    ),
    "Pipfile": (("packages", ""), ("dev-packages", "dev")),
    "package.json": (
        ("dependencies", ""),
        ("devDependencies", "dev"),
        ("peerDependencies", "peer"),
        ("optionalDependencies", "optional"),
    ),
    "Cargo.toml": (
        ("dependencies", ""),
        ("workspace dependencies", ""),
        ("dev-dependencies", "dev"),
        ("build-dependencies", "build"),
    ),
    "composer.json": (("require", ""), ("require-dev", "dev")),
    "environment.yml": (("dependencies", ""),),
    "pubspec.yaml": (("dependencies", ""), ("dev_dependencies", "")),
}
"""The keys that lead to a list or table of dependencies, and its purpose; `{}` is the name that `*` matched."""


def _from_tables(text: str, file: str) -> Declared:
    if file.endswith(".json"):
        data = json.loads(text)
    elif file.endswith((".yml", ".yaml")):
        import yaml

        try:
            data = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(str(error)) from error
    else:
        data = tomllib.loads(text)
    declared: Declared = {}
    for keys, purpose in _TABLES[file]:
        for name, table in _at(data, keys.split()):
            if isinstance(table, list):
                keys = [key for each in table if isinstance(each, dict) for key, value in each.items() if not value]
                found = [each for each in table if isinstance(each, str)] + keys  # `- pip:` in an environment.yml
            else:
                versions = (
                    (key, each.get("version") if isinstance(each, Mapping) else each) for key, each in table.items()
                )
                found = [
                    f"{key} {version if isinstance(version, str) else ''}".strip()
                    for key, version in versions
                    if key not in {"python", "php"}
                ]
            declared.setdefault(purpose.format(name), []).extend(found)
    return declared


def _at(data: Any, keys: Sequence[str], name: str = "") -> Iterator[tuple[str, Any]]:
    """The lists and tables at the keys, each with the name that `*` matched."""
    if not keys and isinstance(data, (list, Mapping)):
        yield name, data
    elif keys and isinstance(data, Mapping):
        for key in data if keys[0] == "*" else [keys[0]] if keys[0] in data else []:
            yield from _at(data[key], keys[1:], str(key) if keys[0] == "*" else name)


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


def _go_mod(text: str) -> Declared:
    blocks = "\n".join(
        several or single
        for several, single in re.findall(r"^require\s*(?:\(([^)]*)\)|([^\s(].*)$)", text, re.MULTILINE)
    )
    declared: Declared = {"": [], "indirect": []}
    for line in blocks.splitlines():
        module, _, comment = line.partition("//")
        if module.strip():
            declared["indirect" if "indirect" in comment else ""].append(module.strip())
    return declared


def _matches(pattern: str) -> Reader:
    """A reader for formats that are programs or too rich to parse: it finds what is written plainly."""
    found = re.compile(pattern, re.MULTILINE)
    return lambda text: {"": [" ".join(part for part in match.groups() if part) for match in found.finditer(text)]}


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


_OTHERS: Final[Sequence[tuple[str, Reader]]] = (
    (r"requirements.*\.(txt|in)|constraints.*\.txt", _requirements),
    (r"setup\.cfg", _setup_cfg),
    (r"setup\.py", _setup_py),
    (r"go\.mod", _go_mod),
    ("Gemfile", _matches(r"^\s*gem\s+[\"']([^\"']+)[\"'](?:\s*,\s*[\"']([^\"']+)[\"'])?")),
    (r".*\.gemspec", _matches(r"\.add(?:_runtime)?_dependency[\s(]+[\"']([^\"']+)[\"']")),
    (r"pom\.xml", _matches(r"<dependency>\s*<groupId>([^<]+)</groupId>\s*<artifactId>([^<]+)</artifactId>")),
    (
        r"build\.gradle(\.kts)?",
        _matches(r"^\s*(?:implementation|api|compileOnly|runtimeOnly)[\s(]+[\"']([^\"']+)[\"']"),
    ),
    (r"mix\.exs", _matches(r"\{\s*:(\w+)\s*,\s*\"([^\"]+)\"")),
    (r"Package\.swift", _matches(r"\.package\([^)]*url:\s*\"([^\"]+)\"")),
    (r".*\.(cs|fs|vb)proj", _matches(r"<PackageReference\s+Include=\"([^\"]+)\"(?:\s+Version=\"([^\"]+)\")?")),
)
