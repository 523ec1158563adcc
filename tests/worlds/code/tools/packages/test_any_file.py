"""Whatever a manifest or lock file holds, the rest is shown."""

import asyncio
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denizen.errors import ToolRefused
from denizen.ports import Answer, ToolContext
from denizen.testing import FakeClock
from denizen.worlds.code.tools.package import package_tool

PACKAGE = package_tool(None)
DATA = Path(__file__).parents[4] / "data" / "packages"
WORDS = [
    "name",
    "version",
    "packages",
    "dependencies",
    "requires",
    "resolved",
    "node_modules/a",
    "",
    "a",
    "^1",
    "1.0.0",
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=20,
)
LOCKS = sorted(
    path
    for path in DATA.rglob("*")
    if path.name
    in {"uv.lock", "poetry.lock", "pdm.lock", "yarn.lock", "pnpm-lock.yaml", "Cargo.lock", "requirements.txt"}
)


def described(files: dict[str, bytes]) -> list[str]:
    """What is said of a project with these files."""

    async def nobody(question: str) -> Answer:
        return Answer("call-1", allow=False)

    async def run(folder: Path) -> list[str]:
        turn = ToolContext("session", "call-1", folder, FakeClock(), lambda line: None, nobody)
        return [(await PACKAGE.run({"action": action}, turn)).text for action in ("list", "tree")]

    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            (Path(folder) / name).write_bytes(data)
        return asyncio.run(run(Path(folder)))


@given(VALUES)
@settings(max_examples=60)
def test_any_data_may_stand_in_a_package_lock(data: object) -> None:
    manifest = b'{"name": "lamp", "dependencies": {"a": "^1"}}'
    for text in described({"package.json": manifest, "package-lock.json": json.dumps(data).encode()}):
        assert text.startswith("package.json: lamp (npm; ")
        assert "\n  a" in text


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: f"{lock.parent.name}/{lock.name}")
@given(st.data())
@settings(max_examples=15)
def test_any_piece_of_a_lock_file_may_be_broken(lock: Path, data: st.DataObject) -> None:
    text = lock.read_bytes()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 60, len(text))))
    files = {path.name: path.read_bytes() for path in lock.parent.iterdir() if path.is_file()}
    broken = (
        text[:start] + data.draw(st.sampled_from([b"", b"[", b'"', b"= 3\n", b"\n  - x: y\n", b"\xff"])) + text[end:]
    )
    try:
        texts = described(files | {lock.name: broken})
    except ToolRefused as refused:
        texts = [str(refused)]
    assert all(texts)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("go.mod", b"module m\n\nrequire a.b/c v1.2.3\n" + b"\n" * 300_000),
        ("go.mod", b"module m\n\nrequire a.b/c v1.2.3\n" + b"require (\n" * 100_000),
        ("pnpm-lock.yaml", b"packages:\n  a@1.0.0:\n    a: b" + b" " * 300_000 + b"c\n"),
        ("pnpm-lock.yaml", b"[" * 100_000),
        ("pnpm-lock.yaml", b"- " * 100_000),
    ],
    ids=["lines", "brackets", "blanks", "nested", "nested lists"],
)
def test_a_file_made_to_keep_its_reader_busy_is_read_like_others(name: str, data: bytes) -> None:
    listed, _ = described({name: data, "package.json": b'{"dependencies": {"left": "1"}}'})
    assert "left" in listed
