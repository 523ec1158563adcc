"""Bedrock through the real SDK against a loopback server that frames its streams as AWS does."""

import base64
import importlib.util
import struct
import sys
import zlib
from collections.abc import Iterator, Sequence

import msgspec
import pytest
from tests.models.calls import ASKED, answer, call, failure, request

from denizen.config import Config
from denizen.config.settings import ProviderSettings
from denizen.errors import ConfigError, ModelError
from denizen.events import TextDelta
from denizen.messages import AssistantMessage, Text, Thinking, Usage
from denizen.models import open_model
from denizen.models.bedrock import BedrockModel
from denizen.ports import KnownModel
from denizen.testing import FakeClock, LoopbackAnthropic, LoopbackReply, LoopbackRequest, ModelConformance, Step
from denizen.testing.conformance_model import Line, Play

pytestmark = pytest.mark.skipif(
    not importlib.util.find_spec("anthropic") or not importlib.util.find_spec("boto3"),
    reason="the extra denizen[bedrock] isn't installed",
)
MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
AWS = {"AWS_REGION": "eu-north-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"}


def frame(payload: bytes, **headers: str) -> bytes:
    """A message of an AWS event stream.

    https://docs.aws.amazon.com/transcribe/latest/dg/streaming-setting-up.html#streaming-event-stream
    """
    names = {f":{name.replace('_', '-')}": value for name, value in headers.items()}
    head = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for name, value in names.items()
    )
    prelude = struct.pack("!II", 16 + len(head) + len(payload), len(head))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + head + payload
    return message + struct.pack("!I", zlib.crc32(message))


def framed(streamed: Sequence[bytes]) -> list[bytes]:
    """Events of Anthropic's stream as Bedrock sends them."""
    events = [event.partition(b"data: ")[2].strip() for event in streamed]
    payloads = [msgspec.json.encode({"bytes": base64.b64encode(event).decode()}) for event in events]
    return [frame(each, event_type="chunk", content_type="application/json", message_type="event") for each in payloads]


class LoopbackBedrock(LoopbackAnthropic):
    """Speaks Bedrock's InvokeModel."""

    def _said(self, message: AssistantMessage, request: LoopbackRequest) -> LoopbackReply:
        if request.path.endswith("/invoke-with-response-stream"):
            return LoopbackReply(framed(self.wire.streamed(message)))
        return LoopbackReply([self.wire.whole(message)], headers={"Content-Type": "application/json"})


@pytest.fixture
def server() -> Iterator[LoopbackBedrock]:
    with LoopbackBedrock() as server:
        yield server


def model(server: LoopbackBedrock, **environ: str) -> BedrockModel:
    return BedrockModel(MODEL, environ={**AWS, **environ}, base_url=server.base_url, profile_id="main")


class TestBedrockModel(ModelConformance):
    @pytest.fixture
    def play(self, server: LoopbackBedrock) -> Play:
        def play(*lines: Line) -> KnownModel:
            for line in lines:
                if isinstance(line, ModelError):
                    server.fail(line.status, {"message": line.message})
                elif line is None:
                    server.send(Step.STALL)
                else:
                    server.say(line)
            return model(server)

        return play


async def test_request_is_signed_and_names_the_model_in_its_address(server: LoopbackBedrock) -> None:
    server.say("Hello")
    assert answer(await call(model(server))).text == "Hello"
    [request] = server.requests
    assert request.path == f"/model/{MODEL}/invoke-with-response-stream"
    assert request.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-north-1/bedrock/" in request.headers["authorization"]
    assert "model" not in request.json
    assert request.json["messages"][0]["content"][0]["text"] == "Hi"


async def test_bedrock_api_key_stands_in_for_credentials(server: LoopbackBedrock) -> None:
    server.say("Hello")
    await call(model(server, AWS_BEARER_TOKEN_BEDROCK="bedrock-key"))
    assert server.requests[0].headers["authorization"] == "Bearer bedrock-key"


async def test_thoughts_are_left_out_once_the_conversation_before_them_changed(server: LoopbackBedrock) -> None:
    server.fail(400, {"message": "messages.1.content.0: Invalid `signature` in `thinking` block"})
    server.say("Hello")
    thought = AssistantMessage([Thinking("hm", "c2ln"), Text("Yes.")], f"bedrock:{MODEL}")
    said = ASKED.messages[0]
    assert answer(await call(model(server), request(said, thought, said))).text == "Hello"
    blocks = [received.json["messages"][1]["content"] for received in server.requests]
    assert [[block["type"] for block in each] for each in blocks] == [["thinking", "text"], ["text"]]


async def test_failure_inside_a_stream_is_classified(server: LoopbackBedrock) -> None:
    hello = framed(server.wire.streamed(AssistantMessage([Text("Hello, dear world")])))
    refusal = frame(
        b'{"message": "Too many requests, please wait"}',
        exception_type="throttlingException",
        content_type="application/json",
        message_type="exception",
    )
    server.send(*hello[:5], refusal)
    events = await call(model(server))
    assert isinstance(events[0], TextDelta)
    error = failure(events)
    assert (error.kind, error.profile_id) == ("rate_limit", "main")
    assert "Too many requests, please wait" in error.message


async def test_stream_that_breaks_off_is_tried_again_by_its_kind(server: LoopbackBedrock) -> None:
    hello = framed(server.wire.streamed(AssistantMessage([Text("Hello, dear world")])))
    server.send(*hello[:5], Step.HANG_UP)
    assert failure(await call(model(server))).kind == "timeout"


NOTHING = [b"null", b"[]", b"{}", b'{"bytes": null}', b'{"bytes": "!"}', b'{"bytes": "W10="}', b"\xff"]


@pytest.mark.parametrize(
    "odd",
    [
        bytes(60),
        b"no frames at all, but bytes of this length which say nothing",
        framed([b'data: {"type": "ping"}'])[0].replace(b"bytes", b"bites"),
        *(frame(each, event_type="chunk", message_type="event") for each in NOTHING),
    ],
)
async def test_frames_that_make_no_sense_are_a_failure(server: LoopbackBedrock, odd: bytes) -> None:
    hello = framed(server.wire.streamed(AssistantMessage([Text("Hello")])))
    server.send(*hello[:4], odd)
    assert failure(await call(model(server))).kind == "timeout"


@pytest.mark.parametrize("body", [b"", b"hi", b"\xff", b'"x"', b"[" * 100_000])
async def test_answer_in_one_piece_that_is_none_is_a_failure(server: LoopbackBedrock, body: bytes) -> None:
    server.send(body, content_type="application/json")
    error = failure(await call(model(server), request(stream=False)))
    assert error.message == f"bedrock:{MODEL}: its answer is not a message in Anthropic's format"


async def test_unreachable_server_is_a_failed_connection() -> None:
    nowhere = BedrockModel(MODEL, environ=AWS, base_url="http://127.0.0.1:1")
    error = failure(await call(nowhere))
    assert error.kind == "timeout"
    assert error.message.startswith(f"bedrock:{MODEL}: the connection failed: ")


async def test_unknown_aws_profile_is_reported(server: LoopbackBedrock) -> None:
    environ = {"AWS_REGION": "eu-north-1", "AWS_PROFILE": "nobody"}
    error = failure(await call(BedrockModel(MODEL, environ=environ, base_url=server.base_url)))
    assert error.kind == "auth"
    assert "nobody" in error.message


async def told(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What a person reads who has nothing of AWS but this."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nonexistent")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    opened = open_model(Config(model=f"bedrock:{MODEL}"), environ=environ, clock=FakeClock())
    try:
        error = failure([event async for event in opened.stream(ASKED)])
    finally:
        await opened.close()
    assert error.kind == "auth"
    return error.message.removeprefix(f"bedrock:{MODEL}: ")


async def test_missing_region_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    words = await told({"AWS_BEARER_TOKEN_BEDROCK": "bedrock-key"}, monkeypatch)
    assert words == "AWS isn't set up: no region is set; set AWS_REGION"


async def test_missing_credentials_say_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    todo = "set AWS_BEARER_TOKEN_BEDROCK, or the credentials of AWS's own tools: `aws configure`"
    words = await told({"AWS_REGION": "eu-north-1"}, monkeypatch)
    assert words == f"AWS isn't set up: no credentials are found; {todo}"


def test_model_must_be_named() -> None:
    with pytest.raises(ConfigError, match=r"Name a model of bedrock \(bedrock:MODEL\)"):
        open_model(Config(model="bedrock"), environ=AWS, clock=FakeClock())


async def test_is_a_provider_like_any_other(server: LoopbackBedrock) -> None:
    server.fail(503, {"message": "Try later"})
    server.say(AssistantMessage([Text("Hello")], usage=Usage(1_000, 100)))
    settings = ProviderSettings(base_url=server.base_url)
    opened = open_model(
        Config(model=f"bedrock:{MODEL}", providers={"bedrock": settings}), environ=AWS, clock=FakeClock()
    )
    message = answer([event async for event in opened.stream(ASKED)])
    await opened.close()
    assert message.text == "Hello"
    assert message.usage.cost_usd == pytest.approx(0.00495)
    assert opened.name == f"bedrock:{MODEL}"


def test_missing_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ConfigError, match=r"-m pip install 'anthropic\[bedrock\]>="):
        open_model(Config(model=f"bedrock:{MODEL}"), environ=AWS, clock=FakeClock())
