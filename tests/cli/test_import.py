"""`denizen import`: the plan, what is written, what never is, and the commands that it prints."""

import asyncio
import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import OnTerminal, Run
from tests.worlds.chat.delivery.channels.servers.telegram import TOKEN, TelegramServer

DATA = Path(__file__).parents[1] / "data" / "imports"
SECRETS = ("not-a-real-token", "not-a-real-key")
NAMES = ("openclaw", "hermes", "nanobot")
IMPORTED = {
    "openclaw": {
        "AGENTS.md": "# How to work\n\nAnswer in knots and fathoms.\n",
        "SOUL.md": "Be as dry as a lighthouse.\n",
        "memory/202611/20261102.md": "- The fog horn was repaired.\n",
        "skills/tides/scripts/tides.sh": "#!/bin/sh\necho high\n",
    },
    "hermes": {"SOUL.md": "Be terse.\n", "MEMORY.md": "The quay has six bollards.\n§\nDiesel is sold on Fridays.\n"},
    "nanobot": {"SOUL.md": "Be kind.\n", "MEMORY.md": "- The slipway is closed.\n"},
}


def theirs(name: str, folder: Path) -> Path:
    """A copy of an assistant's folder."""
    copied = Path(shutil.copytree(DATA / name, folder / f".{name}"))
    if (copied / "dotenv").exists():
        (copied / "dotenv").rename(copied / ".env")
    return copied


def written(folder: Path) -> dict[str, tuple[str, int]]:
    """The content and the time of each file in a folder."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): (path.read_text(), path.stat().st_mtime_ns) for path in paths}


@pytest.fixture
def openclaw(tmp_path: Path) -> Path:
    return theirs("openclaw", tmp_path)


@pytest.fixture
def workspace(home: Path) -> Path:
    return home / "workspace"


@pytest.mark.parametrize("name", NAMES)
def test_without_a_terminal_the_plan_is_shown_and_nothing_written(
    name: str, denizen: Run, home: Path, tmp_path: Path
) -> None:
    ran = denizen("import", name, str(theirs(name, tmp_path)))
    assert ran.out == (DATA / f"{name}.txt").read_text()
    assert (ran.status, "Add --yes" in ran.err) == (2, True)
    assert [secret for secret in SECRETS if secret in ran.out + ran.err] == []
    assert not (home / "workspace").exists()


@pytest.mark.parametrize("name", NAMES)
def test_yes_imports_and_a_second_run_changes_nothing(name: str, denizen: Run, tmp_path: Path, workspace: Path) -> None:
    folder = theirs(name, tmp_path)
    assert denizen("import", name, str(folder), "--yes").status == 0
    before = written(workspace)
    assert {path: before[path][0] for path in IMPORTED[name]} == IMPORTED[name]
    assert "tides" in denizen("skills", "list").out
    again = denizen("import", name, str(folder), "--yes")
    assert (again.status, "Nothing new to import." in again.err) == (0, True)
    assert written(workspace) == before


def test_imported_memory_and_skills_count_and_programs_stay_programs(
    denizen: Run, openclaw: Path, workspace: Path
) -> None:
    denizen("import", "openclaw", str(openclaw), "--yes")
    assert "The pilot boat is called Faro." in denizen("memory", "search", "pilot boat").out
    assert "The fog horn was repaired." in denizen("memory", "search", "fog horn").out
    assert "Nothing changed." in denizen("skills", "check").err
    assert "as it was" in next(line for line in denizen("skills", "list").out.splitlines() if "tides" in line)
    assert os.access(workspace / "skills/tides/scripts/tides.sh", os.X_OK)


def test_answer_at_a_terminal_decides(on_terminal: OnTerminal, openclaw: Path, workspace: Path) -> None:
    refused = on_terminal("import", "openclaw", str(openclaw))
    refused.expect("Import 8 files into")
    refused.enter("n")
    assert refused.end() == 130
    assert not workspace.exists()
    allowed = on_terminal("import", "openclaw", str(openclaw))
    allowed.expect("Import 8 files into")
    allowed.enter("y")
    assert allowed.end() == 0
    assert (workspace / "SOUL.md").exists()


def test_file_with_other_content_is_kept_and_the_imported_one_is_next_to_it(
    denizen: Run, openclaw: Path, workspace: Path
) -> None:
    (workspace / "skills/tides").mkdir(parents=True)
    (workspace / "SOUL.md").write_text("Be mine.\n")
    (workspace / "skills/tides/SKILL.md").write_text("mine\n")
    for _ in range(2):
        ran = denizen("import", "openclaw", str(openclaw), "--yes")
        assert ran.status == 0
        assert "skills/tides/SKILL.md exist with other content, and are kept" in ran.out
    assert (workspace / "SOUL.md").read_text() == "Be mine.\n"
    assert (workspace / "SOUL.from-openclaw.md").read_text() == "Be as dry as a lighthouse.\n"
    assert {*written(workspace / "skills/tides")} == {"SKILL.md"}
    (openclaw / "workspace/SOUL.md").write_text("Be as bright as a lighthouse.\n")
    ran = denizen("import", "openclaw", str(openclaw), "--yes")
    assert "SOUL.md and SOUL.from-openclaw.md exist with other content, and are kept" in ran.out
    assert (workspace / "SOUL.from-openclaw.md").read_text() == "Be as dry as a lighthouse.\n"


def test_half_an_import_is_completed(denizen: Run, openclaw: Path, workspace: Path) -> None:
    denizen("import", "openclaw", str(openclaw), "--yes")
    (workspace / "skills/tides/SKILL.md").unlink()
    (workspace / "USER.md").unlink()
    ran = denizen("import", "openclaw", str(openclaw), "--yes")
    assert "Imported 2 files" in ran.err
    assert (workspace / "skills/tides/SKILL.md").exists()


def test_starter_that_nobody_edited_is_replaced(denizen: Run, openclaw: Path, workspace: Path) -> None:
    from denizen.prompt.texts import STARTER

    workspace.mkdir()
    (workspace / "AGENTS.md").write_text(STARTER)
    denizen("import", "openclaw", str(openclaw), "--yes")
    assert (workspace / "AGENTS.md").read_text() == IMPORTED["openclaw"]["AGENTS.md"]


def test_links_huge_binary_and_unreadable_files_are_listed_and_left_out(
    denizen: Run, openclaw: Path, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.md").write_text("my diary\n")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/2026-11-03.md").write_text("my diary\n")
    ours = openclaw / "workspace"
    for name in ("SOUL.md", "USER.md", "AGENTS.md", "HEARTBEAT.md"):
        (ours / name).unlink()
    (ours / "SOUL.md").symlink_to(tmp_path / "secret.md")
    (ours / "AGENTS.md").symlink_to("../../secret.md")
    shutil.rmtree(ours / "memory")
    (ours / "memory").symlink_to(tmp_path / "notes")
    (ours / "skills/tides/scripts/link.md").symlink_to(tmp_path / "secret.md")
    (ours / "MEMORY.md").write_text("x" * 1_000_001)
    (ours / "HEARTBEAT.md").write_bytes(b"\0\1")
    (ours / "IDENTITY.md").write_bytes(b"\xff\xfe")
    os.mkfifo(ours / "USER.md")
    ran = denizen("import", "openclaw", str(openclaw), "--yes")
    assert (ran.status, "Nothing new to import." in ran.err) == (0, True), ran.err
    for reason in (
        "workspace/SOUL.md is a link, and links aren't followed",
        "workspace/AGENTS.md is a link, and links aren't followed",
        "workspace/skills/tides/scripts/link.md is a link",
        "workspace/MEMORY.md is larger than 1,000,000 bytes",
        "it isn't text",
        "it isn't UTF-8 text",
        "it is not a regular file",
    ):
        assert reason in ran.out
    assert "workspace/memory" in ran.out
    assert "diary" not in ran.out
    assert not workspace.exists()


def test_settings_that_name_another_folder_lead_nowhere(
    denizen: Run, openclaw: Path, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/IDENTITY.md").write_text("Another.\n")
    (openclaw / "openclaw.json").write_text(f'{{agents: {{defaults: {{workspace: "{tmp_path}/elsewhere"}}}}}}')
    (openclaw / "workspace/skills/..tides").mkdir()
    (openclaw / "workspace/skills/..tides/SKILL.md").write_text("---\nname: up\ndescription: Climbs.\n---\n")
    assert denizen("import", "openclaw", str(openclaw), "--yes").status == 0
    assert not (workspace / "IDENTITY.md").exists()
    assert {path.name for path in (workspace / "skills").iterdir()} == {"tides"}


@pytest.mark.parametrize(
    ("name", "file"),
    [("openclaw", "openclaw.json"), ("hermes", "cron/jobs.json"), ("nanobot", "config.json")],
)
def test_broken_file_is_named_and_nothing_is_written(
    name: str, file: str, denizen: Run, tmp_path: Path, workspace: Path
) -> None:
    folder = theirs(name, tmp_path)
    (folder / file).write_text('{"jobs": [')
    ran = denizen("import", name, str(folder), "--yes")
    assert (ran.status, ran.out) == (2, "")
    assert f"{folder / file} isn't JSON" in ran.err
    assert not workspace.exists()


def test_settings_of_unexpected_form_are_left_out(denizen: Run, openclaw: Path) -> None:
    (openclaw / "openclaw.json").write_text('{"channels": {"telegram": 3, "slack": {"allowFrom": 7}}}')
    never = '{"prompt": "x", "schedule": {"kind": "at", "atMs": 99999999999999999}}'
    odd = f'[1, {{}}, {never}, {{"payload": [], "schedule": "daily", "name": 2}}]'
    (openclaw / "cron/jobs.json").write_text(f'{{"jobs": {odd}}}')
    ran = denizen("import", "openclaw", str(openclaw), "--yes")
    assert ran.status == 0, ran.err
    assert "denizen channels add slack\n" in ran.out
    assert "# job 2: it has no prompt" in ran.out


def test_whoever_pastes_what_is_printed_runs_no_words_of_theirs(denizen: Run, openclaw: Path, tmp_path: Path) -> None:
    hourly = {"kind": "every", "everyMs": 3_600_000}
    jobs = [
        {"name": "off", "enabled": False, "schedule": hourly, "prompt": "sum up\ntouch made #"},
        {"name": "odd\ntouch made", "schedule": {}, "prompt": "x"},
        {"name": "option", "schedule": hourly, "prompt": "--wake=touch made"},
    ]
    (openclaw / "cron/jobs.json").write_text(json.dumps({"jobs": jobs}))
    channels = {"none\ntouch made": {"x": 1}, "telegram": {"token\ntouch made": "x"}}
    (openclaw / "openclaw.json").write_text(json.dumps({"channels": channels}))
    printed = denizen("import", "openclaw", str(openclaw)).out.partition("set it up:\n")[2]
    pasted = f'denizen() {{ echo "$#: $*"; }}\n{printed}'
    ran = subprocess.run(["/bin/sh"], input=pasted, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (ran.stderr, (tmp_path / "made").exists()) == ("", False)
    assert "8: cron add --name option -- every 3600s --wake=touch made" in ran.stdout


def test_folder_without_anything_to_import_is_refused(denizen: Run, tmp_path: Path) -> None:
    ran = denizen("import", "hermes", str(tmp_path / "user"))
    assert (ran.status, "contains nothing to import" in ran.err) == (2, True)


@pytest.mark.parametrize("name", NAMES)
async def test_printed_commands_work(name: str, denizen: Run, home: Path, tmp_path: Path) -> None:
    shown = await asyncio.to_thread(denizen, "import", name, str(theirs(name, tmp_path)))
    (home / "denizen.toml").unlink(missing_ok=True)
    (home / "denizen.toml").write_text('[gateway]\nowner = "telegram:4711"\n')
    commands = [line for line in shown.out.splitlines() if line.startswith("denizen ")]
    commands += [line.partition(") ")[2] for line in shown.out.splitlines() if line.startswith("# (disabled there) ")]
    async with TelegramServer().serving() as server:
        for command in commands:
            words = shlex.split(command)[1:]
            secrets = [f"token={TOKEN}", f"base_url={server.url}"] if words[0] == "channels" else []
            ran = await asyncio.to_thread(denizen, *words, *secrets)
            assert ran.status == 0, ran.err
    assert 'allow = ["4711"' in (home / "denizen.toml").read_text()
    listed = await asyncio.to_thread(denizen, "cron", "list")
    assert len(listed.out.splitlines()) == len(commands)
