"""Answers about tests: which there are, and how they are run."""

import re
from collections.abc import Generator, Sequence
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from denizen.messages import ToolResult
from denizen.models.offline.files import told
from denizen.models.offline.outputs import Listing, find_files, read_files, shown
from denizen.models.offline.plan import Plan, Want
from denizen.models.offline.project import is_own
from denizen.models.offline.question import Question

READ = 12
"""How many files that may say it are read."""

_TESTS: Final = (
    "{test_*.*,*_test.*,*.test.*,*.spec.*,*_spec.*,*Test.java,*Tests.java,*Test.kt,*Tests.cs,*Test.php,*Tests.swift,"
    "**/tests/*.rs}"
)
"""What files of tests are called."""


class Way(NamedTuple):
    """A way to run tests: a file so called that holds the `sign`, a regular expression, means the command."""

    file: str
    sign: str
    command: str


WAYS: Final = (
    Way("[Mm]akefile", r"^test\s*:(?!=)", "make test"),
    Way("[Mm]akefile", r"\A(?![\s\S]*^test\s*:)[\s\S]*^check\s*:(?!=)", "make check"),
    Way("justfile", r"^test\b.*:", "just test"),
    Way("tox.ini", "", "tox"),
    Way("noxfile.py", "", "nox"),
    Way("pyproject.toml", r"pytest", "python -m pytest"),
    Way("pytest.ini", "", "python -m pytest"),
    Way("setup.cfg", r"^\[tool:pytest\]", "python -m pytest"),
    Way("manage.py", r"django", "python manage.py test"),
    Way("package.json", r'"test"\s*:\s*"(?!.*no test specified)', "npm test"),
    Way("Cargo.toml", "", "cargo test"),
    Way("go.mod", "", "go test ./..."),
    Way("pom.xml", "", "mvn test"),
    Way("build.gradle*", "", "gradle test"),
    Way("*.csproj", "", "dotnet test"),
    Way("Package.swift", "", "swift test"),
    Way("mix.exs", "", "mix test"),
    Way("Gemfile", r"\brspec", "bundle exec rspec"),
    Way("composer.json", r'"test"\s*:', "composer test"),
    Way("pubspec.yaml", "", "dart test"),
)


def tests(asked: Question, found: re.Match[str]) -> Plan:
    """The files of tests."""
    listing = yield from _listing(asked.place(found))
    return told(listing, "test file", asked.place(found))


def how(asked: Question, found: re.Match[str]) -> Plan:
    """The commands that run them, and which file says so."""
    known = ",".join(dict.fromkeys(way.file for way in WAYS))
    paths = [path for path in (yield from find_files(f"{{{known}}}")).files if is_own(path)]
    chosen = sorted([path for path in paths if "/" not in path] or paths)[:READ]
    results = (yield from read_files(chosen)) if chosen else []
    commands = _commands(dict(zip(chosen, (shown(result.text).text for result in results), strict=True)))
    if commands:
        rows = "\n".join(f"- `{command}` (from `{path}`)" for command, path in commands.items())
        return f"The tests are run by:\n\n{rows}"
    listing = yield from _listing(".")
    if any(path.endswith(".py") for path in listing.files):
        return "The tests are run by `python -m pytest`, as far as the names of their files tell."
    return "I find nothing here that says how tests are run, such as a Makefile, pyproject.toml or package.json."


def not_run(asked: Question, found: re.Match[str]) -> Plan:
    """That it runs nothing, and how they are run."""
    return "I only look, and run nothing. " + (yield from how(asked, found))


def _listing(place: str) -> Generator[Sequence[Want], Sequence[ToolResult], Listing]:
    listing = yield from find_files(_TESTS, place)
    return Listing([path for path in listing.files if is_own(path)], listing.complete)


def _commands(texts: dict[str, str]) -> dict[str, str]:
    """The commands, each with the path of the file that means it."""
    found: dict[str, str] = {}
    for way in WAYS:
        for path, text in texts.items():
            if fnmatch(PurePosixPath(path).name, way.file) and re.search(way.sign, text, re.MULTILINE):
                found.setdefault(way.command, path)
    return found
