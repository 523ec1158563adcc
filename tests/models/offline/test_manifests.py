"""What the manifests of many languages declare; the files are in `tests/data/offline/manifests`."""

from pathlib import Path

import pytest

from denizen.models.offline.manifests import reader_of

MANIFESTS = Path(__file__).parents[2] / "data/offline/manifests"


@pytest.mark.parametrize(
    ("path", "declared"),
    [
        ("setup.cfg", {"": ["attrs>=25", 'tomli; python_version < "3.11"'], "optional: docs": ["sphinx"]}),
        ("setup.py", {"": ["six>=1.17", "idna"]}),
        ("Pipfile", {"": ["flask *", "local"], "dev": ["black >=25"]}),
        ("environment.yml", {"": ["numpy=2.3", "pip"]}),
        ("poetry/pyproject.toml", {"": ["httpx ^0.28", "psycopg ^3"], "group: dev": ["pytest ^9"]}),
        ("composer.json", {"": ["monolog/monolog ^3"], "dev": ["phpunit/phpunit ^12"]}),
        ("Gemfile", {"": ["rails ~> 8.0", "puma"]}),
        ("lamp.gemspec", {"": ["rack", "thor"]}),
        ("pom.xml", {"": ["org.junit junit"]}),
        ("build.gradle.kts", {"": ["io.ktor:ktor-server:3.2.0"]}),
        ("mix.exs", {"": ["phoenix ~> 1.8", "jason >= 0.0.0"]}),
        ("Package.swift", {"": ["https://example.org/Lamp.git"]}),
        ("pubspec.yaml", {"": ["http ^1.5.0", "lints ^6.0.0"]}),
        ("Lamp.csproj", {"": ["Serilog 4.3.0"]}),
    ],
)
def test_reads_what_a_manifest_declares(path: str, declared: dict[str, list[str]]) -> None:
    read = reader_of(path)
    assert read
    found = read((MANIFESTS / path).read_text())
    assert {what: names for what, names in found.items() if names} == declared


@pytest.mark.parametrize("path", ["package-lock.json", "requirements.md", "notes.txt", "Cargo.lock"])
def test_other_files_are_no_manifests(path: str) -> None:
    assert reader_of(path) is None


@pytest.mark.parametrize(
    ("path", "text"),
    [("pyproject.toml", "[a"), ("package.json", "{"), ("setup.cfg", "x"), ("setup.py", "def"), ("Cargo.toml", "= 1")],
)
def test_broken_manifest_is_a_value_error(path: str, text: str) -> None:
    read = reader_of(path)
    assert read
    with pytest.raises(ValueError, match=r"."):
        read(text)


@pytest.mark.parametrize("path", ["pyproject.toml", "package.json", "Cargo.toml", "composer.json", "Pipfile"])
@pytest.mark.parametrize("value", ["1", '"text"', "[1, {}]", "{}"])
def test_unusual_shapes_declare_nothing(path: str, value: str) -> None:
    read = reader_of(path)
    assert read
    json = path.endswith(".json")
    names = ("dependencies", "require", "packages", "project", "tool")
    text = (
        "{" + ", ".join(f'"{n}": {value}' for n in names) + "}" if json else "\n".join(f"{n} = {value}" for n in names)
    )
    assert not any(read(text).values())
