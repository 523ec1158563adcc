"""The order of versions, as PyPI (PEP 440), npm, crates.io and Go (SemVer) have it."""

import re

_VERSION = re.compile(r"\s*[vV=]*(?:(\d{1,9})!)?(\d{1,18}(?:\.\d{1,18})*)[-_.]?([^+\s]*)")
_TOKEN = re.compile(r"(\d{1,18})|([a-zA-Z]+)")
_SAME = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc", "rev": "post", "r": "post"}
_PHASES = {"dev": -2, "post": 1}
_BEFORE, _RELEASE = -1, 0

Key = tuple[int, tuple[int, ...], int, tuple[tuple[int, int, str], ...]]


def version_key(version: str) -> Key:
    """A key to sort versions by. What isn't a version comes before all that are."""
    found = _VERSION.match(version)
    if not found:
        return (-1, (), _RELEASE, ())
    release = [int(number) for number in found[2].split(".")]
    while len(release) > 1 and not release[-1]:
        release.pop()
    tokens = [_token(number, word) for number, word in _TOKEN.findall(found[3])]
    phase = _PHASES.get(tokens[0][2], _BEFORE) if tokens else _RELEASE
    return (int(found[1] or 0), tuple(release), phase, tuple(tokens))


def is_prerelease(version: str) -> bool:
    """Whether it comes before a release."""
    return version_key(version)[2] < _RELEASE


def step(old: str, new: str) -> str:
    """How far a version is behind: `major`, `minor` or `patch`; empty where it isn't."""
    before, after = version_key(old), version_key(new)
    if before >= after:
        return ""
    for name, place in (("major", 0), ("minor", 1)):
        if [*before[1], 0, 0][place] != [*after[1], 0, 0][place]:
            return name
    return "patch"


def _token(number: str, word: str) -> tuple[int, int, str]:
    word = word.lower()
    return (0, int(number), "") if number else (1, 0, _SAME.get(word, word))
