"""The recorded replies, and whether what is recovered from one is what it means.

`python -m tests.actions.recovery.rows` prints the share of each family that passes.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from denizen.actions import Recovered, recover_calls

DATA = Path(__file__).parents[2] / "data" / "toolcalls"
Row = dict[str, Any]


def _load(name: str) -> Any:
    return json.loads((DATA / name).read_text("utf-8"))


ROWS: list[Row] = [json.loads(line) for line in (DATA / "toolcalls.jsonl").read_text("utf-8").splitlines()]
OFFERED: dict[str, list[str]] = _load("offered.json")
EXCEPTIONS: dict[str, dict[str, str]] = _load("exceptions.json")
NEVER = EXCEPTIONS["either way"]
ALONE = NEVER | EXCEPTIONS["alone"]


def tools_of(row: Row) -> list[dict[str, Any]]:
    """The tools that the row offers."""
    given = [tool.get("function", tool) for tool in row["tools"]]
    if row["id"] not in OFFERED:
        return given
    anything = {"type": "object", "properties": {}}
    schema = given[0]["parameters"] if given else anything
    return [{"name": name, "parameters": schema} for name in OFFERED[row["id"]]]


def recovered(row: Row, *, prefixed: bool = False) -> Recovered:
    """What the reply holds, alone or after its prefix."""
    return recover_calls((row.get("prefix") or "") * prefixed + row["raw"], tools_of(row))


def wrong(row: Row, got: Recovered) -> list[str]:
    """What isn't as the row expects it. Texts are compared without the white space around them."""
    return [*_wrong_calls(row["expect"], got), *_wrong_words(row["expect"], got)]


def _wrong_calls(expect: Row, got: Recovered) -> Iterator[str]:
    count = len(got.calls)
    if count != expect.get("calls_count", len(expect["calls"]) if "calls" in expect else count):
        yield f"{count} calls"
    if count < expect.get("calls_count_min", 0):
        yield f"only {count} calls"
    if [call.name for call in got.calls] != expect.get("calls_names", [call.name for call in got.calls]):
        yield "names"
    if expect.get("arguments_empty") and any(call.args for call in got.calls):
        yield "arguments where none are"
    for call, meant in zip(got.calls, expect.get("calls", []), strict=False):
        if call.name != meant.get("name", call.name):
            yield f"calls {call.name}"
        subset = meant.get("arguments_subset", {})
        if call.args != meant.get("arguments", call.args) or call.args != call.args | subset:
            yield f"arguments {call.args}"


def _wrong_words(expect: Row, got: Recovered) -> Iterator[str]:
    content = expect.get("content", True)
    if got.text != (content or "").strip() if content is not True else "content" in expect and not got.text:
        yield f"text {got.text!r}"
    if not got.text.startswith(expect.get("content_prefix", "")):
        yield f"text {got.text!r}"
    if got.thinking != expect.get("reasoning", got.thinking).strip():
        yield f"thinking {got.thinking!r}"


def shares() -> str:
    """A table: for each family, how many replies there are, and how many pass alone and after their prefix."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in ROWS:
        passes = [not wrong(row, recovered(row, prefixed=prefixed)) for prefixed in (False, True)]
        for name in (row["family"], "all"):
            counts[name] = [a + b for a, b in zip(counts[name], [1, *passes], strict=True)]
    order = sorted(counts, key=lambda name: (name == "all", name.lower()))
    lines = [f"| {name} | {' | '.join(map(str, counts[name]))} |" for name in order]
    return "\n".join(["| family | replies | alone | with prefix |", "|---|---|---|---|", *lines])


if __name__ == "__main__":
    print(shares())
