"""`denizen` itself: help, version, and what is loaded for what."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import PROGRAM, Run
from tests.cli.model import Model, call, stalls
from tests.cli.test_cancel import wait_until

import denizen as package

COMMANDS = ("ask", "chat", "answer", "sessions", "models", "config", "trust", "doctor")


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)], ids=["alone", "--help", "-h"])
def test_help_names_the_commands_and_the_exit_statuses(denizen: Run, arguments: tuple[str, ...]) -> None:
    ran = denizen(*arguments)
    text = ran.out + ran.err
    assert all(f"  {command} " in text for command in COMMANDS)
    assert "130 cancelled" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(denizen: Run, command: str) -> None:
    ran = denizen(command, "--help")
    assert ran.status == 0
    assert ran.out.startswith(f"Usage: denizen {command} ")


def test_help_for_ask_names_its_options(denizen: Run) -> None:
    options = (
        "--model PROVIDER:MODEL",
        "--session NAME",
        "--continue, --resume",
        "--workspace",
        "--config",
        "--profile NAME",
        "--driver NAME",
        "--max-iterations, --max-turns N",
        "--max-cost USD",
        "--json",
        "--no-stream",
        "--yes",
        "--non-interactive",
        "--read-only",
        "--quiet",
        "--image",
        "--output-schema",
    )
    out = denizen("ask", "--help").out
    assert [option for option in options if option not in out] == []


def test_help_names_only_options_that_have_an_effect(denizen: Run) -> None:
    asks = ("--no-stream", "--yes", "--non-interactive", "--quiet")
    limits = ("--model", "--max-cost", "--auto-approve", "--read-only")
    replay, acp = denizen("replay", "--help").out, denizen("acp", "--help").out
    assert [option for option in (*asks, *limits) if option in replay] == []
    assert [option for option in (*asks, *limits, "--json") if option in acp] == [*limits]


def test_version(denizen: Run) -> None:
    assert denizen("--version").out == f"denizen, version {package.__version__}\n"


def test_an_unknown_command_is_wrong_use(denizen: Run) -> None:
    ran = denizen("aks")
    assert ran.status == 2
    assert ran.err.endswith("\nerror: No such command 'aks'. Did you mean ask?\n")


def test_progress_that_cannot_be_written_stops_nothing(model: Model, repo: Path, environ: dict[str, str]) -> None:
    model.plays(call("read", path="hello.py"), "Done.")
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [*PROGRAM, "ask", "hi"],
            cwd=repo,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=full,
            check=False,
        )
    assert (ran.stdout, ran.returncode) == (b"Done.\n", 0)


def test_a_folder_that_is_gone_is_reported(tmp_path: Path, environ: dict[str, str]) -> None:
    words = ["/bin/sh", "-c", f"mkdir gone; cd gone; rmdir ../gone; {' '.join(PROGRAM)} ask hi"]
    done = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "current folder no longer exists" in done.stderr
    assert "Traceback" not in done.stderr


def test_streams_that_are_closed_are_no_reason_to_fail(denizen: Run, environ: dict[str, str]) -> None:
    command = f"exec {sys.executable} -m denizen config path <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], env=environ, check=False).returncode == 0


def test_what_is_said_to_a_closed_stream_goes_into_no_file(model: Model, repo: Path, environ: dict[str, str]) -> None:
    model.plays(stalls("Let me see"))
    command = ["sh", "-c", f"exec {' '.join(PROGRAM)} ask hi <&- >&- 2>&-"]
    with subprocess.Popen(command, cwd=repo, env=environ) as process:
        wait_until(lambda: len(model.requests) == 1)
        open_files = {str(Path(f"/proc/{process.pid}/fd/{number}").readlink()) for number in range(3)}
        process.terminate()
    assert open_files == {os.devnull}


@pytest.mark.parametrize("arguments", [["--help"], ["ask", "--help"], ["--version"]], ids=" ".join)
def test_a_help_that_cannot_be_written_is_a_failure(environ: dict[str, str], arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run([*PROGRAM, *arguments], env=environ, stdout=full, stderr=subprocess.PIPE, check=False)
    assert ran.returncode == 1
    assert ran.stderr.decode() == "error: Standard output can't be written: No space left on device.\n"


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("denizen.cli.main", {"asyncio", "msgspec", "denizen.engine", "denizen.config.load"}),
        ("denizen.cli.ask", {"prompt_toolkit", "rich", "genai_prices", "anthropic"}),
        ("denizen.cli.chat", {"prompt_toolkit", "rich"}),
    ],
)
def test_what_is_not_needed_is_not_loaded(module: str, unwanted: set[str]) -> None:
    code = f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert unwanted.isdisjoint(json.loads(ran.stdout))


def test_a_question_loads_only_what_answers_it(model: Model, denizen: Run, tmp_path: Path) -> None:
    model.plays("Hello.")
    ran = denizen("ask", "hi", cwd=tmp_path, warm=False, PYTHONPROFILEIMPORTTIME="1")
    assert ran.out == "Hello.\n"
    loaded = {line.rpartition("|")[2].strip() for line in ran.err.splitlines() if line.startswith("import time:")}
    assert "aiohttp.client" in loaded
    unwanted = {
        *("aiohttp.web", "croniter", "genai_prices", "mcp", "prompt_toolkit", "rich.console", "tree_sitter", "yaml"),
        *("denizen.checkpoints", "denizen.models.advice", "denizen.models.failure_words", "denizen.tools.mcp"),
        *(
            "denizen.tools.patching.parse",
            "denizen.tools.programs.join",
            "denizen.tools.policy.risk",
            "denizen.worlds.code",
        ),
    }
    assert loaded & unwanted == set()
