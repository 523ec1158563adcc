"""`denizen gateway`, `denizen send` and `denizen status`."""

import asyncio
import json
import plistlib
import signal
import stat
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import OnTerminal, Run
from tests.cli.gateway import PATIENCE, GatewayProgram
from tests.cli.model import Model, stalls
from tests.cli.test_cancel import wait_until
from tests.documents import LINE, PAPER

from denizen.cli.gateway.client import Client
from denizen.cli.gateway.exchange import Exchange
from denizen.cli.gateway.service import describe, install
from denizen.errors import DenizenError
from denizen.messages import AssistantMessage, ToolCall
from denizen.runtime.clock import SystemClock
from denizen.testing import FakeClock, LoopbackRequest
from denizen.worlds.chat.ledger.database import Database
from denizen.worlds.chat.ledger.sqlite_file import SqliteFile


@pytest.fixture
async def gateway(
    home: Path, environ: dict[str, str], model: Model, warm_python: list[str]
) -> AsyncIterator[GatewayProgram]:
    program = GatewayProgram(home, environ, python=warm_python)
    await program.start()
    yield program
    await program.end(signal.SIGKILL)


async def test_send_prints_the_reply_and_status_says_where(gateway: GatewayProgram, denizen: Run, model: Model) -> None:
    model.plays("It is leaking.", "I told you.")
    for words, reply in (("What about the roof?", "It is leaking."), ("Again?", "I told you.")):
        ran = await asyncio.to_thread(denizen, "send", *words.split())
        assert (ran.out, ran.status) == (f"{reply}\n", 0), ran.err
    ran = await asyncio.to_thread(denizen, "status")
    lines = ran.out.splitlines()
    assert lines[0] == f"running: process {gateway.pid}, {gateway.url}"
    assert {"1 session", "inbox: 2 done", "outbox: 2 sent", "last chat: none"} < {*lines}
    assert "started; model: " in gateway.log


class StartsGateway(FakeClock):
    """A clock that starts the gateway instead of sleeping."""

    def __init__(self, program: GatewayProgram) -> None:
        super().__init__()
        self._program = program

    async def sleep(self, seconds: float) -> None:
        await self._program.start()


async def test_send_waits_for_a_gateway_that_restarts(gateway: GatewayProgram, home: Path, model: Model) -> None:
    model.plays("It is leaking.")
    exchange = Exchange(Client(home), "home", StartsGateway(gateway))
    await exchange.skip()
    await gateway.end(signal.SIGKILL)
    assert [reply["content"] async for reply in exchange.say("What about the roof?")] == ["It is leaking."]


async def test_send_says_how_to_send_again_when_it_gives_up(gateway: GatewayProgram, home: Path) -> None:
    exchange = Exchange(Client(home), "the roof", FakeClock())
    await exchange.skip()
    await gateway.end(signal.SIGKILL)
    with pytest.raises(DenizenError, match="denizen send --chat 'the roof' --id roof-1 TEXT"):
        _ = [reply async for reply in exchange.say("What about the roof?", "roof-1")]


async def test_message_that_is_sent_again_under_its_id_has_the_same_reply(
    gateway: GatewayProgram, denizen: Run, model: Model
) -> None:
    model.plays("It is leaking.", "Never asked.")
    for _ in range(2):
        ran = await asyncio.to_thread(denizen, "send", "--id", "roof", "What about the roof?")
        assert (ran.out, ran.err.strip()) == ("It is leaking.\n", "message roof")


async def test_an_idle_gateway_loads_only_what_listens(home: Path, environ: dict[str, str], model: Model) -> None:
    program = GatewayProgram(home, environ | {"PYTHONPROFILEIMPORTTIME": "1"})
    await program.start()
    assert await program.end() == 0
    loaded = {line.rpartition("|")[2].strip() for line in program.log.splitlines() if line.startswith("import time:")}
    assert "aiohttp.web" in loaded
    unwanted = {
        *("croniter", "genai_prices", "mcp", "prompt_toolkit", "rich", "schemathesis", "tree_sitter", "yaml"),
        *("denizen.models.failure_words", "denizen.tools.mcp", "denizen.worlds.code"),
    }
    assert loaded & unwanted == set()


async def test_chat_sends_each_line_and_prints_the_replies(gateway: GatewayProgram, denizen: Run, model: Model) -> None:
    model.plays("It is leaking.", "I told you.")
    lines = "What about the roof?\n\nAgain?\n/approve\n"
    ran = await asyncio.to_thread(denizen, "chat", "--gateway", piped=lines)
    assert ran.out.splitlines() == ["It is leaking.", "I told you.", "Nothing is waiting for approval here."], ran.err
    assert ran.status == 0


async def test_files_that_are_mentioned_go_along(
    gateway: GatewayProgram, denizen: Run, model: Model, repo: Path
) -> None:
    (repo / "bridge.pdf").write_bytes(PAPER.data)
    (repo / "notes.txt").write_text("It leaks.")
    model.plays("Yes.", "It does.")
    ran = await asyncio.to_thread(denizen, "send", "is it open? @bridge.pdf")
    assert (ran.out, ran.status) == ("Yes.\n", 0), ran.err
    assert LINE in json.dumps(model.requests[0])
    await asyncio.to_thread(denizen, "chat", "--gateway", piped="what of @notes.txt and @roof.txt?\n")
    assert "It leaks." in model.told()
    (repo / "bridge.pdf").write_bytes(PAPER.data[:400])
    refused = await asyncio.to_thread(denizen, "send", "is it open? @bridge.pdf")
    assert refused.status != 0
    assert "bridge.pdf isn't a PDF document that can be read" in refused.err
    assert len(model.requests) == 2


async def test_chat_passes_commands_on_and_an_unknown_one_is_not_said_to_the_model(
    gateway: GatewayProgram, denizen: Run, model: Model
) -> None:
    model.plays("It is in /etc.", "A file.")
    ran = await asyncio.to_thread(
        denizen, "chat", "--gateway", piped="/help\n/hlep me\nWhere?\n/etc/hosts\n/approve\n/UNDO\n"
    )
    told = ["Unknown command: /hlep. Did you mean /help?", "It is in /etc.", "A file."]
    assert ran.out.splitlines()[-5:] == [*told, "Nothing is waiting for approval here.", "Undone: /etc/hosts"], ran.err
    assert "/stop [all]" in ran.out
    assert ran.status == 0


async def test_new_talk_is_begun_and_the_one_before_listed_by_its_title(
    gateway: GatewayProgram, denizen: Run, model: Model
) -> None:
    model.plays("Noted.", "Which?")
    for words, reply in (("The word is plum.", "Noted.\n"), ("/new", "Started afresh."), ("The word?", "Which?\n")):
        assert (await asyncio.to_thread(denizen, "send", words)).out.startswith(reply)
    assert "plum" not in model.told()
    listed = (await asyncio.to_thread(denizen, "sessions", "list")).out.splitlines()
    [(now, before)] = [(line, after) for line, after in pairwise(listed) if "--at" in after]
    assert ("The word?" in now, "The word is plum." in before) == (True, True)
    at = before.split("--at ")[1].split()[0]
    name = now.split()[0]
    assert (await asyncio.to_thread(denizen, "sessions", "fork", name, "plum", "--at", at)).status == 0
    assert "Noted." in (await asyncio.to_thread(denizen, "sessions", "show", "plum")).out


async def test_answer_that_another_program_sends_waits_for_what_comes_next(
    gateway: GatewayProgram, denizen: Run, model: Model
) -> None:
    asks = AssistantMessage([ToolCall("", "message", {"text": "It leaks.", "chat": "bob"})], stop_reason="tool_calls")
    model.plays(asks, "I told Bob.")
    ran = await asyncio.to_thread(denizen, "send", "Tell Bob.")
    assert "/approve" in ran.out, ran.err
    ran = await asyncio.to_thread(denizen, "send", "/approve")
    assert (ran.out, ran.status) == ("I told Bob.\n", 0), ran.err


async def test_only_the_gateway_goes_on_with_its_parked_turn(
    gateway: GatewayProgram, denizen: Run, model: Model
) -> None:
    asks = AssistantMessage([ToolCall("", "message", {"text": "It leaks.", "chat": "bob"})], stop_reason="tool_calls")
    model.plays(asks, "I told Bob.")
    await asyncio.to_thread(denizen, "send", "Tell Bob.")
    await gateway.end()
    key = "agent:main:channel:cli:account:default:peer:direct:home"
    for command in (["ask", "--session", key, "And?"], ["answer", key, "yes"]):
        ran = await asyncio.to_thread(denizen, *command)
        assert (ran.status, ran.out) == (1, "")
        assert "Only the gateway can continue it" in ran.err
    ran = await asyncio.to_thread(denizen, "answer", key)
    assert "Only the gateway can continue it" in ran.out
    assert "Answer with: denizen answer" not in ran.out
    await gateway.start()
    ran = await asyncio.to_thread(denizen, "send", "/approve")
    assert (ran.out, ran.status) == ("I told Bob.\n", 0), ran.err


async def test_who_waits_in_vain_hears_why_that_may_be(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Quiet(Client):
        """Answers after one wait in which nothing came."""

        waits = 0

        async def get(self, *_: object, **__: object) -> Any:
            self.waits += 1
            return {"replies": [{"seq": 1, "in_reply_to": self.id, "content": "At last."}] if self.waits > 1 else []}

        async def post(self, path: str, body: Mapping[str, Any]) -> Any:
            self.id = body["id"]
            return {"accepted": True}

    assert [reply["content"] async for reply in Exchange(Quiet(home), "home").say("hi")] == ["At last."]
    assert "/approve" in capsys.readouterr().err


async def test_chat_begins_with_where_it_is_and_quit_leaves_it(
    gateway: GatewayProgram, on_terminal: OnTerminal
) -> None:
    screen = on_terminal("chat", "--gateway", "shop")
    await asyncio.to_thread(screen.shows, f"chat shop · {gateway.url}")
    screen.enter("/quit")
    assert await asyncio.to_thread(screen.end) == 0


def test_print_without_install_is_refused(denizen: Run) -> None:
    ran = denizen("gateway", "--print")
    assert (ran.status, "install --print" in ran.err) == (2, True)


async def test_stop_is_heard_while_a_reply_is_awaited(
    gateway: GatewayProgram, on_terminal: OnTerminal, model: Model
) -> None:
    model.plays(stalls("Well"), "Ann.")
    screen = on_terminal("chat", "--gateway")
    screen.enter("tell me everything")
    await asyncio.to_thread(wait_until, lambda: len(model.requests) == 1)
    screen.enter("/stop")
    await asyncio.to_thread(screen.shows, "Well")
    screen.enter("who am I?")
    await asyncio.to_thread(screen.shows, "Ann.")
    await asyncio.to_thread(wait_until, lambda: not screen.echoes)  # until the prompt is back, the terminal takes keys
    screen.type("\x04")
    assert await asyncio.to_thread(screen.end) == 0


async def test_chat_goes_on_with_a_gateway_that_was_started_anew(
    gateway: GatewayProgram, on_terminal: OnTerminal, model: Model, denizen: Run
) -> None:
    model.plays("Here.", "Still here.")
    screen = on_terminal("chat", "--gateway")
    screen.enter("where are you?")
    await asyncio.to_thread(screen.shows, "Here.")
    await gateway.end()
    await asyncio.to_thread(screen.shows, "error: ")
    await gateway.start()
    await asyncio.to_thread(denizen, "send", "and now?")
    await asyncio.to_thread(screen.shows, "Still here.")


async def test_send_says_that_an_empty_message_is_none(gateway: GatewayProgram, denizen: Run) -> None:
    ran = await asyncio.to_thread(denizen, "send", " ")
    assert ran.status == 1, gateway.log
    assert "error: The gateway refuses: The message is empty" in ran.err


def test_owner_that_names_no_chat_is_refused_with_an_example(denizen: Run, home: Path) -> None:
    with (home / "denizen.toml").open("a") as file:
        file.write('[gateway]\nowner = "ann"\n')
    ran = denizen("gateway")
    assert ran.status == 2
    assert 'gateway.owner is "channel:chat", such as "http:ann"' in ran.err


async def test_files_are_private_and_gateway_json_goes_with_the_gateway(gateway: GatewayProgram, home: Path) -> None:
    for name in ("token", "gateway.json", "gateway.db"):
        assert stat.S_IMODE((home / name).stat().st_mode) == 0o600
    token = gateway.token
    assert await gateway.end() == 0, gateway.log
    assert not (home / "gateway.json").exists()
    await gateway.start()
    assert gateway.token == token


async def test_token_is_rotated_while_the_gateway_runs_and_while_it_does_not(
    gateway: GatewayProgram, denizen: Run, home: Path, model: Model
) -> None:
    model.plays("It is leaking.")
    tokens = [gateway.token]
    ran = await asyncio.to_thread(denizen, "gateway", "--rotate-token")
    assert (ran.status, str(home / "token") in ran.out) == (0, True), ran.err
    tokens.append(gateway.token)
    assert (await asyncio.to_thread(denizen, "send", "The roof?")).out == "It is leaking.\n"
    await gateway.end()
    await asyncio.to_thread(denizen, "gateway", "--rotate-token")
    assert len({*tokens, gateway.token}) == 3


async def test_second_gateway_of_a_home_is_refused(gateway: GatewayProgram, denizen: Run) -> None:
    ran = await asyncio.to_thread(denizen, "gateway", "--port", "0")
    assert ran.status == 2
    assert f"process {gateway.pid}" in ran.err


async def test_ledger_that_is_missing_next_to_its_sessions_is_not_replaced_in_silence(
    gateway: GatewayProgram, denizen: Run, home: Path, environ: dict[str, str], model: Model
) -> None:
    model.plays("hi", "hello again")
    await gateway.post("ann", "hi", id="1")
    await gateway.replies("ann", 1)
    assert await gateway.end() == 0
    (home / "gateway.db").rename(home / "away.db")
    for found in (None, b""):
        if found is not None:
            (home / "gateway.db").write_bytes(found)
        ran = await asyncio.to_thread(denizen, "gateway", "--port", "0")
        assert ran.status == 2
        assert "gateway.db is missing, but the home has 1 session of the gateway" in ran.err
    anew = GatewayProgram(home, environ)
    anew.options = ("--new-ledger",)
    await anew.start()
    assert (await anew.post("ann", "hi", id="1"))[1]["accepted"], "its ids are forgotten"
    assert await anew.end() == 0


async def test_port_that_is_taken_is_refused(
    gateway: GatewayProgram, denizen: Run, tmp_path: Path, model: Model
) -> None:
    port, other = gateway.url.rpartition(":")[2], tmp_path / "other"
    other.mkdir(mode=0o700)
    (other / "gateway.json").write_text('{"pid": 1, "port": 1}')
    ran = await asyncio.to_thread(denizen, "gateway", "--port", port, DENIZEN_HOME=str(other))
    assert ran.status == 2
    assert f"127.0.0.1:{port}: address already in use. Choose another port (--port)" in ran.err
    assert not (other / "gateway.json").exists(), "that of one that was killed is gone"


@pytest.mark.parametrize(
    ("grace", "signals"), [(0.0, [signal.SIGTERM]), (PATIENCE * 2, [signal.SIGTERM, signal.SIGINT])]
)
async def test_turn_that_outlasts_the_grace_time_or_a_second_signal_goes_on_at_the_next_start(
    gateway: GatewayProgram, home: Path, model: Model, grace: float, signals: list[signal.Signals]
) -> None:
    await gateway.end()
    with (home / "denizen.toml").open("a") as file:
        file.write(f"[gateway]\ngrace = {grace}\n")
    begun, calls = threading.Event(), 0

    def answer(_: LoopbackRequest) -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            begun.set()
            ended.wait(PATIENCE)
        return f"answer {calls}"

    ended = threading.Event()
    model.server.otherwise = answer
    await gateway.start()
    await gateway.post("ann", "hi", id="1")
    await asyncio.to_thread(begun.wait, PATIENCE)
    for number in signals[:-1]:
        gateway.process.send_signal(number)
    assert await gateway.end(signals[-1]) == 0, gateway.log
    ended.set()
    await gateway.start()
    assert [reply["content"] for reply in await gateway.replies("ann", 1)] == ["answer 2"]


async def test_sighup_reads_the_configuration_again_or_says_what_is_wrong_with_it(
    gateway: GatewayProgram, home: Path, model: Model
) -> None:
    settings = home / "denizen.toml"
    good, url = settings.read_text(), gateway.url
    for refused, (bad, why) in enumerate(
        (
            ("[gateway]\nturns = 0\n", "turns"),
            ("[agent]\ndriver = 'x'\n", "no driver"),
            ("[gateway]\nowner = 'boss'\n", "gateway.owner is"),
        )
    ):
        settings.write_text(good + bad)
        gateway.process.send_signal(signal.SIGHUP)
        await asyncio.to_thread(wait_until, lambda at=refused: gateway.log.count("the old one stays") > at)
        assert why in gateway.log
    assert (await gateway.request("GET", "/api/status"))[0] == 200
    settings.write_text(good + "[gateway]\nturns = 3\n")
    gateway.process.send_signal(signal.SIGHUP)
    assert gateway.process.stdout
    line = await asyncio.wait_for(gateway.process.stdout.readline(), PATIENCE)
    assert line.decode().strip() == f"listening on {url}"
    model.plays("here I am")
    await gateway.post("ann", "hi")
    assert [reply["content"] for reply in await gateway.replies("ann", 1)] == ["here I am"]
    assert await gateway.end() == 0, gateway.log


async def test_sighup_while_it_begins_again_does_not_end_it(gateway: GatewayProgram) -> None:
    gateway.process.send_signal(signal.SIGHUP)
    await asyncio.to_thread(wait_until, lambda: "beginning again" in gateway.log)
    while gateway.log.count("started; model") < 2:
        gateway.process.send_signal(signal.SIGHUP)
        await asyncio.sleep(0.01)
    assert await gateway.end() == 0, gateway.log


async def test_log_is_kept_as_json_lines_without_secrets(
    home: Path, environ: dict[str, str], model: Model, warm_python: list[str]
) -> None:
    secret = "x8fQ2-not-to-be-seen-9Lk"
    gateway = GatewayProgram(home, environ | {"SOME_API_KEY": secret}, python=warm_python)
    await gateway.start()
    body = {"channel": "http", "chat": "ann", "sender": "ann", "content": "hi", "media": []}
    model.server.otherwise = lambda _: f"I know {secret}"
    await gateway.request("POST", "/api/messages", json=body)
    await gateway.replies("ann", 1)
    assert await gateway.end() == 0
    lines = [json.loads(line) for line in (home / "logs" / "gateway.jsonl").read_text().splitlines()]
    assert {"at", "level", "logger", "message"} == lines[0].keys()
    assert any(line["message"].startswith("started; model: ") for line in lines)
    assert secret not in (home / "logs" / "gateway.jsonl").read_text() + gateway.log
    assert (home / "logs" / "gateway.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("platform", "name"), [("linux", "denizen-gateway.service"), ("darwin", "denizen.gateway.plist")]
)
def test_service_runs_the_gateway_of_the_home(tmp_path: Path, platform: str, name: str) -> None:
    home = tmp_path / 'a "quoted" & 100% home'
    service = describe(platform, tmp_path, home)
    install(service)
    text = service.path.read_text()
    assert service.path.name == name
    if platform == "darwin":
        read = plistlib.loads(text.encode())
        assert read["ProgramArguments"] == [sys.executable, "-P", "-m", "denizen", "gateway"]
        assert read["EnvironmentVariables"] == {"DENIZEN_HOME": str(home)}
    else:
        escaped = str(home).replace('"', '\\"').replace("%", "%%")
        assert f'Environment="DENIZEN_HOME={escaped}"\n' in text
        assert f'ExecStart="{sys.executable}" "-P" "-m" "denizen" "gateway"\n' in text


def test_install_prints_the_service_and_writes_nothing(denizen: Run, environ: dict[str, str], home: Path) -> None:
    ran = denizen("gateway", "install", "--print")
    assert (ran.status, str(home) in ran.out) == (0, True), ran.err
    assert not [*Path(environ["HOME"]).rglob("*gateway*")]


def test_while_a_gateway_starts_clients_say_so(denizen: Run, home: Path) -> None:
    database = Database(SqliteFile(home / "gateway.db"), SystemClock())
    try:
        for arguments in (["send", "hi"], ["status"], ["gateway", "--rotate-token"]):
            ran = denizen(*arguments)
            assert ran.status == 2
            assert "is starting or stopping" in ran.err
    finally:
        database.close()


def test_without_a_gateway_clients_say_how_to_start_one(denizen: Run, home: Path) -> None:
    (home / "gateway.json").write_text('{"pid": 1, "port": 1}')
    for arguments in (["send", "hi"], ["status"]):
        ran = denizen(*arguments)
        assert ran.status == 2
        assert "denizen gateway" in ran.err
