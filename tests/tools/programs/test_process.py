"""Programs that nobody supervises: what the runner itself ends, and what it keeps."""

import asyncio
import itertools
import os
import select
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.errors import ToolRefused
from denizen.ports import Sandboxed
from denizen.tools.programs.process import BoundedOutput, LineEmitter, plain, run

ENVIRON = {"PATH": os.environ["PATH"]}


async def sh(script: str, folder: Path, seconds: float = 60) -> tuple[int | None, bytes]:
    said = bytearray()
    status = await run(Sandboxed(["sh", "-c", script], ENVIRON), folder, seconds=seconds, take=said.extend)
    return status, bytes(said)


async def test_the_exit_status_is_the_programs(tmp_path: Path) -> None:
    assert await sh("echo x; exit 3", tmp_path) == (3, b"x\n")
    assert await sh("kill -TERM $$", tmp_path) == (-15, b"")


async def test_its_process_group_ends_with_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "held")
    reader = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(tmp_path / "held", os.O_WRONLY)
    os.close(reader)
    await sh("(trap '' TERM; exec 9<held; echo >ready; sleep 1000) & until test -s ready; do :; done", tmp_path)
    gone = select.poll()
    gone.register(writer, 0)
    assert gone.poll(5000)
    os.close(writer)


async def test_one_that_got_away_with_the_output_is_not_waited_for(tmp_path: Path) -> None:
    status, said = await sh("setsid sleep 30 & echo $!", tmp_path)
    assert status == 0
    os.kill(int(said), 9)


async def test_what_is_to_be_done_afterwards_is_done_however_often_it_is_cancelled(tmp_path: Path) -> None:
    done, started = list[bytes](), asyncio.Event()
    command = Sandboxed(["sleep", "1000"], ENVIRON, afterwards=lambda: "done")
    running = asyncio.create_task(
        run(command, tmp_path, seconds=None, take=done.append, started=lambda pid: started.set())
    )
    await started.wait()
    for _ in range(3):
        running.cancel()
        await asyncio.sleep(0)
    await asyncio.wait([running])
    assert (running.cancelled(), done) == (True, [b"done\n"])


async def test_its_time_is_limited(tmp_path: Path) -> None:
    assert await sh("echo x; exec sleep 1000", tmp_path, 0.3) == (None, b"x\n")


async def test_a_missing_program_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ToolRefused, match=f"nothing can't be started in {tmp_path}: No such file"):
        await run(Sandboxed(["nothing"], ENVIRON), tmp_path, seconds=1, take=print)


async def test_many_run_at_once(tmp_path: Path) -> None:
    answers = await asyncio.gather(*(sh(f"echo {number}", tmp_path) for number in range(20)))
    assert [said for _, said in answers] == [f"{number}\n".encode() for number in range(20)]


@given(st.lists(st.binary(max_size=50)), st.integers(2, 100))
def test_whatever_is_written_is_kept_or_counted(pieces: list[bytes], most: int) -> None:
    kept = BoundedOutput(most)
    for piece in pieces:
        kept.add(piece)
    whole = b"".join(pieces)
    text = kept.text("hint")
    if len(whole) <= most - most % 2:
        assert text == plain(whole.decode(errors="replace"))
    else:
        assert " bytes left out; hint" in text


@given(st.binary(), st.lists(st.integers(0, 50)))
def test_output_is_shown_the_same_however_it_comes_apart(data: bytes, cuts: list[int]) -> None:
    shown: list[str] = []
    lines = LineEmitter(shown.append, 10_000)
    ends = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for start, end in itertools.pairwise(ends):
        lines.add(data[start:end])
    lines.add(b"")
    assert "".join(shown) == plain(data.decode(errors="replace"))
