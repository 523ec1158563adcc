"""What it costs to import an engine, and to get from nothing to the first request."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from benchmarks.contenders import Broken, Entry, Process, Server, environment, loopback, scratch
from benchmarks.hall import Figures, Hall, Plan, samples
from benchmarks.report import Goal, Table
from benchmarks.roster import DENIZEN, FLOOR
from benchmarks.scene import KEY, MODEL, QUESTION

NOTE = """\
Whole processes, the interpreter included, modules compiled and the disk warm; medians (least–most) of {starts}.
*Import* runs the import statement of a user of the library. *First request* is everything from the start of the
process to the arrival of its first request at a server that leaves it waiting: the agent built, a session opened;
`denizen ask` is the whole command line. *Answered*: from the start to the last byte of an answer without a call.
*Prompt*: `denizen` alone, until a terminal shows where to type. CPU is that of the process and its children, memory the
most that the process itself held. Ratios are over the floor, round by round."""
COLUMNS = (
    *("engine", "import CPU ms", "import MB", "first request CPU ms", "first request MB", "answered CPU ms"),
    "prompt CPU ms",
)
NOTHING = "python alone"
USED = "denizen, run_agent"  # `denizen` itself loads what is used, when it is used
ASK = "denizen ask"
PROMPT = "denizen chat"
PATIENCE = 60.0  # seconds until a first request is given up
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
IMPORT = """
import {modules}
import json, time
cpu = time.process_time()
with open("/proc/self/status") as status:
    peak = next(line for line in status if line.startswith("VmHWM"))
print(json.dumps({{"cpu_ms": cpu * 1e3, "mb": int(peak.split()[1]) / 1024}}))
"""
CONFIG = """
model = "openai:{model}"

[providers.openai]
base_url = "{url}"
auth_profiles = [{{ id = "bench", api_key = "{key}" }}]
"""


def table(plan: Plan, peers: Sequence[Entry]) -> Table:
    result = Table("Starting", NOTE.format(starts=plan.starts), COLUMNS)
    entries = [FLOOR, DENIZEN, *peers]
    with loopback() as server:
        meeting = Hall(server)
        imports = {entry.name: partial(_import, entry.python(), entry.imports) for entry in entries}
        imports[NOTHING] = partial(_import, Path(sys.executable), "sys")
        imports[USED] = partial(_import, Path(sys.executable), "denizen.engine")
        firsts: dict[str, Callable[[], Figures]] = {entry.name: partial(_built, server, entry) for entry in entries}
        firsts[ASK] = partial(_asked, server)
        ends = {FLOOR.name: partial(_floor_answered, server), ASK: partial(_answered, server), PROMPT: _prompted}
        imported = _measure(meeting, imports, plan)
        begun = _measure(meeting, firsts, plan)
        ended = _measure(meeting, ends, plan)
    for name in (NOTHING, FLOOR.name, DENIZEN.name, USED, ASK, *(peer.name for peer in peers)):
        cells = [*_cells(imported.get(name, ())), *_cells(begun.get(name, ())), _cpu(ended.get(name, ()))]
        cells.append(_cpu(ended.get(PROMPT, ())) if name == ASK else "")
        if any(cells):
            result.add(name, *cells)
    result.goals += _goals("import denizen", imported.get(DENIZEN.name, ()), 100, 30)
    result.goals += _goals("denizen ask to its first request", begun.get(ASK, ()), 500, 60)
    result.goals += _ratio("denizen ask to its first request, over the floor", begun, 1.5)
    result.goals += _ratio("denizen ask to its last byte, over the floor", ended, 1.6)
    if ended.get(PROMPT):
        result.goals.append(Goal("denizen's first prompt, CPU", 250, samples(ended[PROMPT], "cpu_ms").median, "ms"))
    meeting.report(result)
    return result


def _measure(meeting: Hall, lanes: dict[str, Callable[[], Figures]], plan: Plan) -> dict[str, list[Figures]]:
    """All but the first round, which warms the disk."""
    return {name: taken[1:] for name, taken in meeting.interleave(lanes, plan.starts + 1).items()}


def _cells(figures: Sequence[Figures]) -> tuple[object, object]:
    return (samples(figures, "cpu_ms"), samples(figures, "mb")) if figures else ("", "")


def _cpu(figures: Sequence[Figures]) -> object:
    return samples(figures, "cpu_ms") if figures else ""


def _ratio(what: str, taken: dict[str, list[Figures]], limit: float) -> Iterator[Goal]:
    if ASK in taken and FLOOR.name in taken:
        ours, floor = (samples(taken[name], "cpu_ms") for name in (ASK, FLOOR.name))
        yield Goal(what, limit, ours.beside(floor))


def _goals(what: str, figures: Sequence[Figures], cpu_ms: float, mb: float) -> Iterator[Goal]:
    if figures:
        yield Goal(f"{what}, CPU", cpu_ms, samples(figures, "cpu_ms").median, "ms")
        yield Goal(f"{what}, memory", mb, samples(figures, "mb").median, "MB")


def _import(python: Path, modules: str) -> Figures:
    with scratch() as home:
        command = [python, "-c", IMPORT.format(modules=modules)]
        done = subprocess.run(command, cwd=home, env=environment(home), capture_output=True, text=True, check=False)
    if done.returncode:
        raise Broken(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout.splitlines()[-1])


def _built(server: Server, entry: Entry) -> Figures:
    """An engine's driver, told to play one turn as soon as its agent is built."""
    server.stats()
    with scratch() as home, closing(Process(entry, server.url("hold"), home)) as process:
        process.tell("turns", count=1, store="disk")
        return _at_first_request(server, process.pid)


def _asked(server: Server) -> Figures:
    """`denizen ask`, with a configuration file and an empty home."""
    server.stats()
    with scratch() as home, _asking(server, home, "hold") as pid:
        return _at_first_request(server, pid)


def _answered(server: Server) -> Figures:
    with scratch() as home, _asking(server, home, "answer") as pid:
        while _state(pid) != "Z":
            time.sleep(0.005)
        return {"cpu_ms": _cpu_ms(pid)}


def _floor_answered(server: Server) -> Figures:
    with scratch() as home, closing(Process(FLOOR, server.url("answer"), home)) as process:
        process.wait_until_built()
        process.ask("answered")
        return {"cpu_ms": _cpu_ms(process.pid)}


def _prompted() -> Figures:
    """`denizen` alone, on a terminal, in an empty home."""
    ours, terminal = pty.openpty()
    try:
        with scratch() as home:
            streams = {"stdin": terminal, "stdout": terminal, "stderr": terminal}
            variables = {**environment(home), "TERM": "xterm-256color"}
            with subprocess.Popen([_program(), "chat", "--workspace", home], env=variables, **streams) as child:
                shown = b""
                while b">" not in shown.partition(b"/help")[2]:
                    if not select.select([ours], [], [], PATIENCE)[0]:
                        raise Broken("no prompt came")
                    shown += os.read(ours, 65536)
                cpu_ms = _cpu_ms(child.pid)
                child.kill()
        return {"cpu_ms": cpu_ms}
    finally:
        os.close(ours)
        os.close(terminal)


def _program() -> Path:
    program = Path(sys.executable).with_name("denizen")
    if not program.exists():
        raise Broken("the command `denizen` is not installed")
    return program


@contextmanager
def _asking(server: Server, home: Path, how: str) -> Generator[int]:
    config, workspace = home / "denizen.toml", home / "workspace"
    config.write_text(CONFIG.format(model=MODEL, url=server.url(how), key=KEY))
    workspace.mkdir()
    command = [_program(), "ask", "--config", config, "--workspace", workspace, QUESTION]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env=environment(home), stdin=quiet, stdout=quiet, stderr=quiet) as child:
        yield child.pid
        child.kill()


def _at_first_request(server: Server, pid: int) -> Figures:
    """CPU and peak memory of a process when its request has come."""
    give_up = time.monotonic() + PATIENCE
    while not server.stats()["requests"]:
        if time.monotonic() > give_up or _state(pid) == "Z":
            raise Broken("no request came")
        time.sleep(0.005)
    peak = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return {"cpu_ms": _cpu_ms(pid), "mb": int(peak.split()[1]) / 1024}


def _cpu_ms(pid: int) -> float:
    return sum(map(int, _stat(pid)[11:15])) * TICK_MS


def _state(pid: int) -> str:
    return _stat(pid)[0]


def _stat(pid: int) -> Sequence[str]:
    """The fields of the process's `stat` from its state on, the third."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
