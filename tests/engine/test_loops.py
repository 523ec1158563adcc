"""A turn that goes round in circles is noticed, and something is done about it (decisions, "Loop detection")."""

import subprocess
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import Host, call, requests_of, run_agent, say

from denizen import Agent, Config, tool
from denizen.config.settings import AgentSettings
from denizen.entries import CheckpointEntry, NoteEntry
from denizen.errors import ToolRefused
from denizen.events import Notice, RunResult
from denizen.messages import AssistantMessage, UserMessage
from denizen.ports import Answer, Control, Interrupt, ModelRequest, Parked, Tool, ToolContext, Traits
from denizen.tools.task import task

READS = Traits.READS | Traits.REPEATABLE
LONG = Config(agent=AgentSettings(max_iterations=60))


def look(path: str) -> str:
    """Look at something."""
    if path == "missing":
        raise ToolRefused(f"there is nothing called {path}")
    return f"this is {path}"


@pytest.fixture
def tools() -> list[Tool]:
    """`look` sees always the same, `clock` never, `write` changes something, `check` runs and is always content."""
    times = count()

    @tool(traits=READS)
    def clock() -> str:
        """Tell the time."""
        return f"{next(times)} o'clock"

    @tool(traits=Traits.WRITES)
    def write(text: str) -> str:
        """Write something."""
        return "written"

    @tool(traits=Traits.EXECUTES)
    def check() -> str:
        """Check what was written."""
        return "all is well"

    @tool(traits=READS)
    def search(word: str) -> str:
        """Look for a word."""
        return "nothing"

    @tool(traits=Traits.WRITES)
    def replace(old: str) -> str:
        """Replace a text."""
        raise ToolRefused("line 7: the text isn't there")

    return [tool(traits=READS)(look), clock, write, check, search, replace, task]


Play = Callable[..., Any]


@pytest.fixture
def play(agent_of: MakeAgent, tools: list[Tool], host: Host) -> Play:
    """`await play(calls, …)`: a turn in which the model makes these calls, one iteration each, then answers."""

    async def run(*steps: Any, io: Host = host, **options: Any) -> tuple[RunResult, list[ModelRequest]]:
        agent = agent_of(*map(_reply, steps), say("Done."), config=LONG, **{"tools": tools, **options})
        result = await run_agent("go", agent=agent, io=io)
        return result, requests_of(agent)

    return run


def _reply(step: Any) -> Any:
    return call(step) if isinstance(step, tuple) else call(*step) if isinstance(step, list) else step


def told(requests: list[ModelRequest]) -> list[str]:
    """What the system told the model, in order."""
    texts = (message.text for message in requests[-1].messages if isinstance(message, UserMessage))
    return [text.removeprefix("[system] ") for text in texts if text.startswith("[system] ")]


LOOK = ("look", {"path": "a"})
B = ("look", {"path": "b"})
CHECK = ("check", {})


async def test_the_same_call_with_the_same_result_three_times_is_reflected_on(play: Play) -> None:
    result, requests = await play(LOOK, LOOK, LOOK)
    assert result.stop_reason == "answered"
    [reflection] = told(requests)
    assert reflection.startswith(
        'You seem to be stuck: the same call was made 3 times with the same result: `look(path="a")`. Before you go on,'
    )
    assert len(requests[2].messages) + 1 < len(requests[3].messages), "it is told before the next call"


async def test_the_user_hears_once_that_the_agent_seems_stuck(play: Play, host: Host) -> None:
    await play(LOOK, LOOK, LOOK, B)
    assert [(notice.text, notice.level) for notice in host.of(Notice)] == [
        ("The agent seems to be stuck; it is asked to reflect.", "info")
    ]


async def test_it_may_be_interspersed_with_other_reads(play: Play) -> None:
    others: Iterator[Any] = (("look", {"path": f"other {n}"}) for n in count())
    _, requests = await play(LOOK, next(others), LOOK, next(others), LOOK)
    assert len(told(requests)) == 1


@pytest.mark.parametrize(
    "steps",
    [
        [LOOK, LOOK],
        [step for n in range(4) for step in (("clock", {}), ("clock", {}), ("look", {"path": str(n)}))],
        [CHECK, ("write", {"text": "1"}), CHECK, ("write", {"text": "2"}), CHECK, ("write", {"text": "3"}), CHECK],
        [("task", {})] * 4,
        [[LOOK, ("task", {"action": "add", "text": "x"})], ("task", {}), ("task", {}), ("task", {}), B],
        [("write", {"text": str(number)}) for number in range(8)],
        [[LOOK, LOOK, LOOK]],
        [("look", {"path": str(number)}) for number in range(12)],
        [step for begin in (0, 5, 10) for step in (LOOK, *[("look", {"path": str(begin + n)}) for n in range(5)])],
    ],
    ids=[
        "twice is none",
        "looking twice at what changes",
        "checking after each change",
        "looking at the plan",
        "bookkeeping in between",
        "changes with like words",
        "thrice in one reply",
        "reading on",
        "coming back to something now and then",
    ],
)
async def test_what_is_no_loop(play: Play, steps: list[Any]) -> None:
    _, requests = await play(*steps)
    assert told(requests) == []


async def test_the_same_call_three_times_in_a_row_that_gives_something_else_is_asked_about_once(
    play: Play, host: Host
) -> None:
    result, requests = await play(*[("clock", {})] * 20)
    assert result.stop_reason == "answered"
    [question] = told(requests)
    assert question.startswith("You have made the same call 3 times in a row: `clock()`. If you wait for something,")
    assert host.of(Notice) == [], "it may wait: nobody needs to know"


async def test_calls_that_are_made_together_again_are_asked_about_too(play: Play) -> None:
    _, requests = await play(*[[("clock", {}), ("clock", {})]] * 3)
    assert told(requests)[0].startswith("You have made the same call 3 times in a row: `clock()`")


async def test_bookkeeping_does_not_hide_that_a_call_is_made_again(play: Play) -> None:
    _, requests = await play(("clock", {}), ("task", {}), ("clock", {}), ("task", {}), ("clock", {}))
    assert told(requests)[0].startswith("You have made the same call 3 times in a row: `clock()`")


@pytest.mark.parametrize(
    "ran", ["3 passed in 0.{}s", "ok demo {}.5 seconds", "Finished in {} ms", "at 12:00:{:02} done"]
)
async def test_a_command_that_only_takes_another_time_gives_the_same(play: Play, ran: str) -> None:
    times = count(1)

    @tool(traits=Traits.EXECUTES)
    def timed() -> str:
        """Run the tests."""
        return ran.format(next(times))

    result, requests = await play(*[("timed", {})] * 12, tools=[timed])
    assert "the same call was made 3 times with the same result" in told(requests)[0]
    assert result.stop_reason == "loop"


async def test_a_number_of_many_digits_is_no_time_that_it_took(play: Play) -> None:
    numbers = count()

    @tool(traits=Traits.EXECUTES)
    def power() -> str:
        """Compute a large number."""
        return f"{next(numbers)}{'7' * 40_000} s"

    _, requests = await play(*[("power", {})] * 3, tools=[power])
    assert told(requests)[0].startswith("You have made the same call 3 times in a row: `power()`")


async def test_the_same_error_three_times(play: Play) -> None:
    _, requests = await play(*[("replace", {"old": text}) for text in "abc"])
    [reflection] = told(requests)
    assert "the same error came 3 times: line 7: the text isn't there" in reflection


READING = [("look", {"path": str(number)}) for number in range(6)]
"""Some files were read before."""


def edit(number: int) -> tuple[str, dict[str, Any]]:
    return ("write", {"text": f"try {number}"})


def failing(number: int, *, flags: str = "") -> tuple[str, dict[str, Any]]:
    return ("failing", {"flags": flags})


STUCK: dict[str, Callable[[int], list[Any]]] = {
    "in one reply": lambda n: [[edit(n), failing(n)]],
    "one after the other": lambda n: [edit(n), failing(n)],
    "checked first": lambda n: [[failing(n), edit(n)]],
    "with a look between": lambda n: [edit(n), ("look", {"path": f"look {n}"}), failing(n)],
    "with many edits between": lambda n: [*(edit(10 * n + each) for each in range(7)), failing(n)],
    "several edits and the check in one reply": lambda n: [[*(edit(10 * n + each) for each in range(3)), failing(n)]],
    "checked another way each time": lambda n: [[edit(n), failing(n, flags=f"-{n}")]],
    "with another check that passes": lambda n: [[edit(n), failing(n), CHECK]],
}


@pytest.mark.parametrize("arranged", STUCK)
async def test_edits_after_which_the_check_fails_as_before_are_noticed_and_again_later(
    play: Play, tools: list[Tool], arranged: str
) -> None:
    lines = count(7)

    @tool(traits=Traits.EXECUTES)
    def failing(flags: str) -> str:
        """Run the tests; the failing line moves with the edits."""
        raise ToolRefused(f"line {next(lines)}: AssertionError: 3 != 4")

    steps = [step for number in range(6) for step in STUCK[arranged](number)]
    _, requests = await play(*READING, *steps, tools=[*tools, failing])
    noticed = [text for text in told(requests) if "with the same result" in text or "the same error came" in text]
    assert len(noticed) == 2, told(requests)


async def test_a_check_that_passes_in_between_is_no_loop(play: Play, tools: list[Tool]) -> None:
    runs = count()

    @tool(traits=Traits.EXECUTES)
    def check() -> str:
        """Fails each second time."""
        if next(runs) % 2 == 0:
            raise ToolRefused("AssertionError")
        return "all is well"

    others = [each for each in tools if each.name != "check"]
    steps = [step for number in range(5) for step in (CHECK, edit(number), CHECK, edit(100 + number))]
    _, requests = await play(*steps, tools=[*others, check])
    assert told(requests) == []


@pytest.mark.needs("git")
async def test_a_return_takes_back_nothing_from_before_the_last_progress(play: Play, project: Path) -> None:
    @tool(traits=Traits.WRITES)
    def improve(turn: ToolContext, line: str) -> str:
        """Add a line."""
        with (turn.workspace / FILE).open("a") as poem:
            poem.write(f"{line}\n")
        return f"added {line}"

    lines = [f"line {number}" for number in range(6)]
    progress = [("improve", {"line": line}) for line in lines]
    await play(SPOILT[0], *progress, *SPOILT[1:], tools=[spoil, improve])
    assert (project / FILE).read_text() == "\n".join(["0line 0", *lines[1:], ""])


async def test_calls_of_one_reply_that_fail_alike_are_one_failure(play: Play) -> None:
    _, requests = await play([("replace", {"old": text}) for text in "abcdef"])
    assert told(requests) == []


@pytest.mark.parametrize("length", [2, 3, 4])
async def test_a_cycle_of_calls_that_gives_the_same_again(play: Play, length: int) -> None:
    cycle = [("look", {"path": str(number)}) for number in range(length)]
    _, requests = await play(*cycle, *cycle)
    [reflection] = told(requests)
    assert f'the same {length} calls are made in turn: `look(path="0")`, `look(path="1")`' in reflection


async def test_a_cycle_of_calls_that_gives_something_else_each_time_takes_three_rounds(play: Play) -> None:
    cycle = [("clock", {}), LOOK, ("clock", {}), B]
    _, requests = await play(*cycle, *cycle)
    assert told(requests) == []
    to_and_fro = [("write", {"text": "x"}), ("write", {"text": "y"})]
    _, requests = await play(*to_and_fro * 3)
    assert "in turn" in told(requests)[0]


async def test_nothing_new_for_five_iterations(play: Play) -> None:
    _, requests = await play(*[("search", {"word": str(number)}) for number in range(6)])
    [reflection] = told(requests)
    assert "the last 5 iterations brought nothing new" in reflection


async def test_bookkeeping_alone_is_no_progress(play: Play) -> None:
    _, requests = await play(LOOK, *[("task", {})] * 5)
    [reflection] = told(requests)
    assert "the last 5 iterations brought nothing new" in reflection


async def test_the_ladder_ends_with_the_reason(play: Play, host: Host) -> None:
    result, requests = await play(*[LOOK] * 20)
    assert (result.stop_reason, result.iterations) == ("loop", 12)
    assert result.error.startswith("Stopped: the turn went round in circles: the same call was made 3 times")
    reflection, backtrack, nobody = told(requests)
    assert reflection.startswith("You seem to be stuck")
    assert backtrack.startswith("This led nowhere: the same call was made 3 times")
    assert '- `look(path="a")`: this is a\n' in backtrack
    assert nobody.startswith("Nobody can be asked")
    [asked] = host.asked
    assert asked.question.startswith("The agent is stuck: the same call")


async def test_progress_begins_the_ladder_anew(play: Play) -> None:
    progress = [("look", {"path": str(number)}) for number in range(5)]
    _, requests = await play(LOOK, LOOK, LOOK, *progress, B, B, B)
    assert [text[:20] for text in told(requests)] == ["You seem to be stuck"] * 2


async def test_the_person_is_asked_and_heard(play: Play, host: Host) -> None:
    host.answer = lambda ask: Answer(ask.call_id, allow=True, text="Look at b instead.")
    result, requests = await play(*[LOOK] * 9, B)
    assert result.stop_reason == "answered"
    said = [message.text for message in requests[-1].messages if isinstance(message, UserMessage)]
    assert any("(asked: The agent is stuck" in text and "Look at b instead." in text for text in said)


@pytest.mark.parametrize(
    "answer",
    [Parked(), Answer("", allow=False), Answer("", allow=False, text="no"), Answer("", allow=True, text="yes")],
)
async def test_where_nobody_has_advice_the_turn_goes_on_and_is_not_parked(
    play: Play, host: Host, answer: Answer | Parked
) -> None:
    host.answer = lambda ask: answer
    result, requests = await play(*[LOOK] * 9)
    assert result.stop_reason == "answered"
    assert told(requests)[-1].startswith("Nobody can be asked. Answer now")


async def test_a_new_turn_begins_with_nothing_held_against_it(agent_of: MakeAgent, tools: list[Tool]) -> None:
    agent = agent_of(call(LOOK), call(LOOK), say("a"), call(LOOK), call(LOOK), say("b"), tools=tools)
    await run_agent("go", agent=agent)
    await run_agent("again", agent=agent)
    assert told(requests_of(agent)) == []


async def test_calls_that_the_person_dropped_are_not_the_models_errors(play: Play, host: Host) -> None:
    def interrupted(request: ModelRequest) -> AssistantMessage:
        host.say(Interrupt("Wait."))
        return call(("replace", {"old": "x"}))

    _, requests = await play(*[interrupted] * 4)
    assert told(requests) == []


FILE = "poem.txt"


@tool(traits=Traits.WRITES)
def spoil(turn: ToolContext, text: str) -> str:
    """Make it worse, and make a file that wasn't there."""
    (turn.workspace / FILE).write_text(text)
    (turn.workspace / "new.txt").write_text(text)
    raise ToolRefused("it doesn't rhyme")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository, so that checkpoints are kept."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / FILE).write_text("Roses are red\n")
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    return folder


SPOILT = [("spoil", {"text": str(number)}) for number in range(6)]


@pytest.mark.needs("git")
async def test_the_files_return_to_where_the_loop_began(play: Play, project: Path) -> None:
    seen: list[str] = []

    def answer(request: ModelRequest) -> AssistantMessage:
        seen.extend(path.name for path in project.iterdir())
        seen.append((project / FILE).read_text())
        return say("I give up.")

    _, requests = await play(*SPOILT, answer, tools=[spoil])
    assert sorted(seen) == [".git", "Roses are red\n", FILE]
    [_, learnt] = told(requests)
    assert learnt.startswith("This led nowhere: the same error came 3 times: it doesn't rhyme:\n- `spoil(")
    assert learnt.count("- `spoil(text=") == 6
    assert learnt.endswith("Try another way.\nThe files are again as they were before that.")


@pytest.mark.needs("git")
async def test_where_no_file_was_changed_none_is_said_to_be_returned(play: Play, project: Path, host: Host) -> None:
    calls = [("replace", {"old": str(number)}) for number in range(6)]
    _, requests = await play(*calls)
    assert told(requests)[1].endswith("Try another way.\nNo file needed to be taken back.")
    assert "the files are again" not in " ".join(notice.text for notice in host.of(Notice))


@pytest.mark.needs("git")
async def test_what_was_done_before_the_loop_stays(play: Play, project: Path) -> None:
    @tool(traits=Traits.WRITES)
    def improve(turn: ToolContext) -> str:
        """Add a line."""
        (turn.workspace / FILE).write_text("Roses are red\nViolets are blue\n")
        return "better"

    await play(("improve", {}), *SPOILT, tools=[spoil, improve])
    assert (project / FILE).read_text() == "Roses are red\nViolets are blue\n"


@pytest.mark.needs("git")
async def test_what_the_user_changed_meanwhile_is_not_overwritten(play: Play, project: Path) -> None:
    class Typing(Host):
        """The user rewrites the file as soon as the agent is done with it."""

        def controls(self) -> Sequence[Control]:
            if (project / FILE).read_text() == "5":
                (project / FILE).write_text("My own words\n")
            return ()

    _, requests = await play(*SPOILT, tools=[spoil], io=Typing())
    assert (project / FILE).read_text() == "My own words\n"
    assert "The files stay as they are. Nothing was touched: it would overwrite" in told(requests)[1]


@pytest.mark.needs("git")
async def test_what_the_user_changed_between_the_steps_stays(play: Play, project: Path) -> None:
    def types(_: ModelRequest) -> AssistantMessage:
        """The user writes another file while the model thinks."""
        (project / "mine.txt").write_text("mine")
        return call(SPOILT[3])

    await play(*SPOILT[:3], types, *SPOILT[4:], tools=[spoil])
    assert (project / FILE).read_text() == "Roses are red\n"
    assert (project / "mine.txt").read_text() == "mine"


@pytest.mark.needs("git")
async def test_a_return_is_in_the_transcript(
    play: Play, project: Path, entries_of: Callable[[Agent], Any], agent_of: MakeAgent
) -> None:
    await play(*SPOILT, tools=[spoil])
    entries = await entries_of(agent_of())
    labels = [entry.label for entry in entries if isinstance(entry, CheckpointEntry)]
    assert labels == ["before", "after"] * 6 + ["returned"]
    [note] = [entry.text for entry in entries if isinstance(entry, NoteEntry)]
    assert note.startswith("This led nowhere")


@pytest.mark.needs("git")
@pytest.mark.parametrize(("lost", "half"), [(0, False), (1, False), (2, False), (3, False), (3, True), (4, True)])
async def test_a_return_that_a_crash_cut_short_is_finished_and_reported_once(
    play: Play, project: Path, tmp_path: Path, agent_of: MakeAgent, *, lost: int, half: bool
) -> None:
    """What a crash leaves is the beginning of the transcript, and perhaps some files that are not returned yet."""
    await play(*SPOILT, tools=[spoil])
    [file] = (tmp_path / "home" / "sessions").rglob("*.jsonl")
    lines = file.read_text().splitlines(keepends=True)
    end = next(n for n, line in enumerate(lines) if '"returned"' in line) + 3
    file.write_text("".join(lines[: end - lost]))
    if half:
        (project / "new.txt").write_text("5")
    agent = agent_of(say("I give up."), tools=[spoil], config=LONG)
    result = await run_agent(None, agent=agent)
    assert result.reply == "I give up."
    assert (project / FILE).read_text() == "Roses are red\n"
    assert not (project / "new.txt").exists()
    assert file.read_text().count('"type":"note"') == 1
    assert [text[:20] for text in told(requests_of(agent))] == ["You seem to be stuck", "This led nowhere: th"]
