"""What the manifests of many languages declare; the files are in `tests/data/offline/manifests`."""

from pathlib import Path

import pytest

from denizen.models.offline.manifests import declared

MANIFESTS = Path(__file__).parents[2] / "data/offline/manifests"


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("Pipfile", {"packages": ["flask *", "local"], "dev-packages": ["black >=25"]}),
        (
            "poetry/pyproject.toml",
            {
                "tool.poetry.dependencies": ["python ^3.11", "httpx ^0.28", "psycopg ^3"],
                "tool.poetry.group.dev.dependencies": ["pytest ^9"],
            },
        ),
        ("composer.json", {"require": ["php >=8.4", "monolog/monolog ^3"], "require-dev": ["phpunit/phpunit ^12"]}),
    ],
)
def test_reads_what_a_manifest_declares(path: str, wanted: dict[str, list[str]]) -> None:
    assert declared(Path(path).name, (MANIFESTS / path).read_text()) == wanted


@pytest.mark.parametrize(
    ("name", "text"),
    [("pyproject.toml", "[a"), ("package.json", "{"), ("Cargo.toml", "= 1"), ("Gemfile", "gem 'rails'")],
)
def test_broken_and_unknown_manifests_are_value_errors(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        declared(name, text)


@pytest.mark.parametrize("name", ["pyproject.toml", "package.json", "Cargo.toml", "composer.json", "Pipfile"])
@pytest.mark.parametrize("value", ["1", '"text"', "{}"])
def test_unusual_shapes_declare_nothing(name: str, value: str) -> None:
    keys = ("dependencies", "require", "packages", "project", "tool")
    lines = ", ".join(f'"{key}": {value}' for key in keys)
    text = f"{{{lines}}}" if name.endswith(".json") else "\n".join(f"{key} = {value}" for key in keys)
    assert not declared(name, text)


def test_packages_of_a_build_are_no_dependencies() -> None:
    assert not declared("pyproject.toml", '[tool.setuptools]\npackages = ["shop"]\n')
