"""Filters on what tools found."""

from pathlib import Path

import pytest

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.tools.function import result
from denizen.tools.programs.jq import MAX_CHARS, filtered

ANSWER = result("two files", files=[{"name": "é.py", "lines": 3}, {"name": "b.py", "lines": 40}])


async def test_without_a_filter_the_answer_stays() -> None:
    assert await filtered(ANSWER, "") is ANSWER


@pytest.mark.parametrize(
    ("jq", "text"),
    [
        (".files[].name", "é.py\nb.py"),
        (".files[] | select(.lines > 10)", '{"name":"b.py","lines":40}'),
        ("[.files[].lines] | add", "43"),
        (".nothing", "null"),
        (".files[5:][]", "[the filter gives nothing]"),
    ],
)
async def test_each_result_is_a_line(jq: str, text: str) -> None:
    answer = await filtered(ANSWER, jq)
    assert answer.text == text
    assert answer.details == ANSWER.details


async def test_it_may_look_at_more_than_the_details() -> None:
    assert (await filtered(ANSWER, ".[0]", [7])).text == "7"


@pytest.mark.parametrize(
    ("jq", "why"),
    [
        (".files[", "syntax error"),
        (".files.name", "Cannot index array with string"),
        ("nonsense(1)", "nonsense/1 is not defined"),
        ('error("no such luck")', "no such luck"),
    ],
)
async def test_a_wrong_filter_is_reported_in_jqs_words(jq: str, why: str) -> None:
    with pytest.raises(ToolRefused, match=f"the jq filter .*{why}"):
        await filtered(ANSWER, jq)


@pytest.mark.parametrize("jq", ["last(repeat(1))", "[range(1e9)]", "def f: f; f", '"a" * 1e9'])
async def test_a_filter_that_takes_too_much_is_ended(jq: str) -> None:
    with pytest.raises(ToolRefused, match="takes too much time or memory"):
        await filtered(ANSWER, jq, seconds=0.5)


async def test_endless_results_are_cut() -> None:
    answer = await filtered(ANSWER, "repeat(1)")
    assert answer.text.endswith("\n1\n[more is left out; narrow the filter]")
    assert len(answer.text) < MAX_CHARS + 100


@pytest.mark.parametrize("reads", ['import "secret" as $x {search: "%s"}; $x', 'include "secret" {search: "%s"}; .'])
async def test_a_filter_reads_no_files(reads: str, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('"hidden"')
    (tmp_path / "secret.jq").write_text("def hidden: 1;")
    with pytest.raises(ToolRefused) as refused:
        await filtered(ANSWER, reads % tmp_path)
    assert "hidden" not in str(refused.value)


async def test_a_filter_sees_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "hidden")
    answer: ToolResult = await filtered(ANSWER, "$ENV, env")
    assert "hidden" not in answer.text
