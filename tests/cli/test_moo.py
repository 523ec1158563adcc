"""`denizen moo` as a program."""

import asyncio
import signal
import socketserver
import subprocess
import threading
from asyncio.subprocess import PIPE
from pathlib import Path

from tests.cli.conftest import PROGRAM, OnTerminal, Run

from denizen.sessions.spend_file import SpendFile
from denizen.worlds.moo.folder import open_folder


def test_init_makes_a_directory_that_can_be_opened(denizen: Run, tmp_path: Path, environ: dict[str, str]) -> None:
    folder = tmp_path / "Mason"
    ran = denizen("moo", "init", str(folder), "--host", "moo.example", "--model", "offline")
    assert (ran.status, ran.err) == (0, "")
    assert f"denizen moo run {folder}" in ran.out
    opened = open_folder(folder, environ=environ)
    assert (opened.settings.host, opened.settings.user, opened.loaded.config.model) == (
        "moo.example",
        "mason",
        "offline",
    )
    assert "MOO_MASON_PASSWORD" in (folder / "denizen.toml").read_text()


def test_init_writes_over_nothing_unless_it_is_told_to(denizen: Run, tmp_path: Path) -> None:
    (tmp_path / "SOUL.md").write_text("# Name\nAnn\n")
    ran = denizen("moo", "init", str(tmp_path))
    assert (ran.status, (tmp_path / "SOUL.md").read_text()) == (2, "# Name\nAnn\n")
    assert "has SOUL.md already" in ran.err
    assert denizen("moo", "init", str(tmp_path), "--force").status == 0
    assert (tmp_path / "SOUL.md").read_text() != "# Name\nAnn\n"


def test_check_says_what_a_directory_comes_to_and_what_is_wrong(denizen: Run, tmp_path: Path) -> None:
    folder = tmp_path / "Mason"
    denizen("moo", "init", str(folder), "--model", "offline")
    ran = denizen("moo", "check", str(folder))
    assert (ran.status, "no password is set. Set MOO_PASSWORD" in ran.err) == (2, True)
    ran = denizen("moo", "run", "--plain", str(folder))
    assert (ran.status, "no password is set. Set MOO_PASSWORD" in ran.err) == (2, True)
    ran = denizen("moo", "check", str(folder), MOO_PASSWORD="mason-pass-123")
    assert (ran.status, ran.err.startswith("The model is `offline`")) == (0, True)
    assert "plays    mason at localhost:8022 (ssh)" in ran.out
    with (folder / "denizen.toml").open("a") as file:
        file.write('tools = ["dig", "fly"]\n')
    ran = denizen("moo", "check", str(folder), MOO_PASSWORD="mason-pass-123")
    assert (ran.status, "Unknown tool fly; available: dig, burrow" in ran.err) == (2, True)


def test_check_says_what_is_wrong_in_soul_and_plans(denizen: Run, tmp_path: Path) -> None:
    folder = tmp_path / "Mason"
    denizen("moo", "init", str(folder), "--model", "offline")
    soul = "## Context\n[lore](lore.md)\n## Tools\n- fly\n## Rules of Engagement\n- `(` -> look\n- `.*` -> look\n"
    (folder / "SOUL.md").write_text(soul)
    (folder / "SOUL.patch.md").write_text("## Verb Mapping\n- go home\n")
    (folder / "builds").mkdir()
    (folder / "builds" / "2026-11-21-09-30.yaml").write_text("rooms: none\n")
    ran = denizen("moo", "check", str(folder), MOO_PASSWORD="mason-pass-123")
    assert ran.status == 2
    for words in (
        "SOUL.md: lore.md isn't there",
        "SOUL.md: a rule has no effect: RE2 can't read the regular expression `(`",
        "SOUL.md: a rule has no effect: `.*` matches everything",
        "SOUL.patch.md: `go home` has no `->`",
        "Unknown tool fly",
        "builds/2026-11-21-09-30.yaml: no rooms",
    ):
        assert words in ran.err


def test_a_trace_that_cannot_be_sent_is_said_and_no_reason_to_stop(denizen: Run, tmp_path: Path) -> None:
    denizen("moo", "init", str(tmp_path), "--host", "127.0.0.1", "--port", "1", "--model", "offline")
    with (tmp_path / "denizen.toml").open("a") as file:
        file.write('key_file = "nowhere"\n')  # which ends it at once
    (tmp_path / "logfire.py").write_text("raise ImportError\n")  # as where it isn't installed
    given = {"MOO_PASSWORD": "mason-pass-123", "PYTHONPATH": str(tmp_path)}
    ran = denizen("moo", "run", "--plain", str(tmp_path), warm=False, LOGFIRE_TOKEN="pylf_x", **given)
    assert "LOGFIRE_TOKEN is set, but logfire isn't installed" in ran.out
    assert "nowhere isn't a private key" in ran.err
    assert "logfire" not in denizen("moo", "run", "--plain", str(tmp_path), warm=False, **given).out


def test_ctrl_c_ends_it_before_it_has_signed_in(denizen: Run, environ: dict[str, str], tmp_path: Path) -> None:
    denizen("moo", "init", str(tmp_path), "--host", "127.0.0.1", "--port", "1", "--model", "offline")
    command = [*PROGRAM, "moo", "run", "--delay", "1000000", str(tmp_path)]
    given = environ | {"MOO_PASSWORD": "mason-pass-123"}
    with subprocess.Popen(command, env=given, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout
        assert "rules, not a language model" in program.stdout.readline()
        program.send_signal(signal.SIGINT)
        assert program.wait() == 0


def test_run_plays_until_it_is_stopped_and_says_what_a_rule_only_model_cannot(
    environ: dict[str, str], tmp_path: Path
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"Welcome.\r\n> \xff\xf9")
        while line := (await reader.readline()).strip():
            got.append(line.decode())
            if got[-1] == "@quit":
                break
            writer.write(b"Done.\r\n> \xff\xf9")
        writer.close()

    async def play() -> tuple[str, int]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        folder = tmp_path / "Ann"
        folder.mkdir()
        (folder / "SOUL.md").write_text("# Name\nAnn\n")
        where = f'transport = "telnet"\nhost = "127.0.0.1"\nport = {server.sockets[0].getsockname()[1]}\nuser = "ann"\n'
        (folder / "denizen.toml").write_text(f'model = "offline"\n[moo]\n{where}')
        program = await asyncio.create_subprocess_exec(
            *PROGRAM, "moo", "run", folder, stdout=PIPE, env=environ | {"MOO_PASSWORD": "ann-pass-1"}
        )
        assert program.stdout
        out = ""
        while "Signed in as Ann" not in out:
            line = await program.stdout.readline()
            assert line, out
            out += line.decode()
        program.terminate()
        status = await program.wait()
        server.close()
        return out, status

    got: list[str] = []
    out, status = asyncio.run(play())
    assert status == 0
    assert got == ["connect ann ann-pass-1", "@quit"]
    assert "rules, not a language model" in out
    [log] = (tmp_path / "Ann" / "logs").glob("*.log")
    assert "[system] Signed in as Ann.\n" in log.read_text()


def test_a_refused_login_ends_with_the_servers_own_words_and_status_2(environ: dict[str, str], tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"Welcome.\r\n> \xff\xf9")
        await reader.readline()
        writer.write(b"Nobody called ann knows such a password: wrong password.\r\n")
        writer.close()

    async def play() -> tuple[bytes, int | None]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        (tmp_path / "SOUL.md").write_text("# Name\nAnn\n")
        where = f'transport = "telnet"\nhost = "127.0.0.1"\nport = {server.sockets[0].getsockname()[1]}\nuser = "ann"\n'
        (tmp_path / "denizen.toml").write_text(f'model = "offline"\n[moo]\n{where}')
        program = await asyncio.create_subprocess_exec(
            *PROGRAM, "moo", "run", tmp_path, stdout=PIPE, stderr=PIPE, env=environ | {"MOO_PASSWORD": "ann-pass-1"}
        )
        _, err = await program.communicate()
        server.close()
        return err, program.returncode

    err, status = asyncio.run(play())
    assert "“Nobody called ann knows such a password: wrong password.”" in " ".join(err.decode().split())
    assert status == 2


def test_a_character_whose_own_budget_is_spent_says_so_and_stays(environ: dict[str, str], tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"Welcome.\r\n> \xff\xf9")
        while (await reader.readline()).strip() not in {b"", b"@quit"}:
            writer.write(b"The sun rises.\r\n> \xff\xf9")
        writer.close()

    async def play() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        (tmp_path / "SOUL.md").write_text("# Name\nAnn\n")
        where = f'transport = "telnet"\nhost = "127.0.0.1"\nport = {server.sockets[0].getsockname()[1]}\nuser = "ann"\n'
        (tmp_path / "denizen.toml").write_text(f'model = "openai:gpt-5"\n[moo]\n{where}session_usd = 20.0\n')
        key = open_folder(tmp_path, environ=environ).session_key
        SpendFile(Path(environ["DENIZEN_HOME"], "spend.db")).add({key: 25.0})
        program = await asyncio.create_subprocess_exec(
            *PROGRAM, "moo", "run", tmp_path, stdout=PIPE, env=environ | {"MOO_PASSWORD": "ann-pass-1", **key_of_model}
        )
        assert program.stdout
        out = ""
        while "$25.0000 of $20 (moo.session_usd sets it)" not in out:
            line = await program.stdout.readline()
            assert line, out
            out += line.decode()
        program.terminate()
        await program.wait()
        server.close()

    key_of_model = {"OPENAI_API_KEY": "sk-not-used"}
    asyncio.run(play())


def test_run_has_the_whole_screen_on_a_terminal(on_terminal: OnTerminal, tmp_path: Path) -> None:
    last: list[bytes] = []

    class Player(socketserver.StreamRequestHandler):
        """Answers every line until @quit."""

        def handle(self) -> None:
            self.wfile.write(b"Welcome.\r\n> \xff\xf9")
            while (line := self.rfile.readline().strip()) and not line.endswith(b"@quit"):
                self.wfile.write(b"You see a lamp.\r\n> \xff\xf9")
            last.append(line)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Player) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (tmp_path / "SOUL.md").write_text("# Name\nAnn\n")
        where = f'transport = "telnet"\nhost = "127.0.0.1"\nport = {server.server_address[1]}\nuser = "ann"\n'
        (tmp_path / "denizen.toml").write_text(f'model = "offline"\n[moo]\n{where}')
        screen = on_terminal("moo", "run", str(tmp_path), MOO_PASSWORD="ann-pass-1")
        screen.shows("The model is `offline`")
        screen.shows("Signed in as Ann")
        screen.shows("(ann) ")
        screen.type("light the lamp\r")
        screen.shows("      light the lamp")
        screen.type("\x03")
        assert screen.end() == 0
        server.shutdown()
    assert last[0].endswith(b"@quit")
    assert screen.modes == screen.modes_before
