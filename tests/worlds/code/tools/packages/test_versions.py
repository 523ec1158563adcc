"""The order of versions."""

import itertools

import pytest

from denizen.worlds.code.tools.packages.graph import Ecosystem, parse_version

PYTHON = [
    "0.9",
    "1.0.dev1",
    "1.0a1",
    "1.0-alpha.2",
    "1.0b1",
    "1.0rc1",
    "1.0",
    "1.0.post1",
    "1.0.1",
    "v1.2",
    "1.10",
    "1!0.1",
]
NPM = ["0.9.0", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-rc.1", "1.0.0", "1.9.0", "1.10.0", "2.0.0"]
GO = ["v0.9.0", "v1.0.0-0.20200101000000-abcdef", "v1.0.0", "v1.2.0", "v1.10.0", "v2.0.0+incompatible"]
ORDERED: list[tuple[Ecosystem, list[str]]] = [("PyPI", PYTHON), ("npm", NPM), ("crates.io", NPM), ("Go", GO)]


@pytest.mark.parametrize(("ecosystem", "versions"), ORDERED)
def test_versions_are_in_order(ecosystem: Ecosystem, versions: list[str]) -> None:
    for lower, higher in itertools.pairwise(versions):
        assert parse_version(ecosystem, lower) < parse_version(ecosystem, higher)


@pytest.mark.parametrize(("one", "other"), [("1.0", "1"), ("v1.0.0", "1.0"), ("1.0rc1", "1.0c1")])
def test_the_same_version_may_be_written_in_several_ways(one: str, other: str) -> None:
    assert parse_version("PyPI", one) == parse_version("PyPI", other)


@pytest.mark.parametrize("version", ["nonsense", "", "1." * 100_000 + "9" * 100_000])
@pytest.mark.parametrize("ecosystem", ["PyPI", "npm", "crates.io", "Go"])
def test_what_is_no_version_can_not_be_compared(ecosystem: Ecosystem, version: str) -> None:
    assert parse_version(ecosystem, version) is None
