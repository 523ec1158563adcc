"""The order of versions in each ecosystem, as `packaging` and `univers` know it."""

from typing import Any

from denizen.tools.packages.graph import Ecosystem


def parse_version(ecosystem: Ecosystem, version: str) -> Any:
    """Something to compare with others of the ecosystem, with `major` and `minor`; None for what isn't a version."""
    from packaging.version import Version
    from univers.versions import GolangVersion, SemverVersion

    kind = {"PyPI": Version, "Go": GolangVersion}.get(ecosystem, SemverVersion)
    try:
        return kind(version)
    except ValueError:
        return None


def step(ecosystem: Ecosystem, old: str, new: str) -> str:
    """How far a version is from a newer one: `major`, `minor` or `patch`; empty where that isn't newer."""
    before, after = parse_version(ecosystem, old), parse_version(ecosystem, new)
    if before is None or after is None:
        return "" if old == new else "not comparable"
    if before >= after:
        return ""
    return "major" if before.major != after.major else "minor" if before.minor != after.minor else "patch"
