"""The order of versions."""

import itertools

import pytest

from denizen.tools.packages.versions import is_prerelease, step, version_key

ORDERED = [
    "nonsense",
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
    "2.0.0-0.20200101000000-abcdef",
    "2.0.0+incompatible",
    "1!0.1",
]


@pytest.mark.parametrize(("lower", "higher"), list(itertools.pairwise(ORDERED)))
def test_versions_are_in_order(lower: str, higher: str) -> None:
    assert version_key(lower) < version_key(higher)


@pytest.mark.parametrize(("one", "other"), [("1.0", "1"), ("v1.0.0", "1.0"), ("1.0rc1", "1.0c1"), ("1.0+a", "1.0+b")])
def test_the_same_version_may_be_written_in_several_ways(one: str, other: str) -> None:
    assert version_key(one) == version_key(other)


def test_only_what_comes_before_a_release_is_a_prerelease() -> None:
    assert [version for version in ORDERED if is_prerelease(version)] == [
        "1.0.dev1",
        "1.0a1",
        "1.0-alpha.2",
        "1.0b1",
        "1.0rc1",
        "2.0.0-0.20200101000000-abcdef",
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [("1.9", "2.0", "major"), ("1.2.3", "1.3", "minor"), ("1.2.3", "1.2.4", "patch"), ("1.0rc1", "1.0", "patch")],
)
def test_a_step_says_how_far_behind_a_version_is(old: str, new: str, expected: str) -> None:
    assert step(old, new) == expected
    assert not step(new, old)
    assert not step(old, old)


def test_a_hostile_version_takes_no_time() -> None:
    assert version_key("1." * 100_000 + "9" * 100_000)
