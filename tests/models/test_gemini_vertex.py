"""Gemini on Vertex AI, with credentials of this test's own and a token server on loopback."""

import asyncio
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.models.calls import answer, call, failure, request
from tests.models.raw import Raw, whole

from denizen import Agent, load_config, run_agent
from denizen.errors import ModelError
from denizen.messages import AssistantMessage, Opaque, Text, ToolCall, ToolResult, UserMessage
from denizen.models.gemini_vertex import VertexModel
from denizen.models.http import Http
from denizen.testing import LoopbackGemini


@pytest.fixture(scope="module")
def private_key() -> str:
    key = rsa.generate_private_key(65537, 2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.fixture(autouse=True)
def account(tmp_path: Path, private_key: str, loopback_gemini: LoopbackGemini, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a service account, whose tokens the loopback server gives; google-auth finds it by itself."""
    fields = {
        "type": "service_account",
        "project_id": "account-project",
        "private_key_id": "1",
        "private_key": private_key,
        "client_email": "denizen@example.com",
        "token_uri": f"{loopback_gemini.base_url}/token",
    }
    path = tmp_path / "account.json"
    path.write_text(json.dumps(fields), encoding="utf-8")
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    return path


def give_token(server: LoopbackGemini, token: str, lives: int = 3600) -> None:
    body = {"access_token": token, "expires_in": lives, "token_type": "Bearer"}
    server.send(json.dumps(body).encode(), content_type="application/json")


def model(server: LoopbackGemini, environ: Mapping[str, str] | None = None, **options: Any) -> VertexModel:
    return VertexModel("gemini-3.5-flash", environ=environ or {}, base_url=server.base_url, **options)


async def test_token_is_asked_for_once(loopback_gemini: LoopbackGemini) -> None:
    give_token(loopback_gemini, "token-1")
    loopback_gemini.say("one", "two")
    client = model(loopback_gemini)
    for words in ("one", "two"):
        assert answer(await call(client)).text == words
    assert [received.path.rpartition("/")[2] for received in loopback_gemini.requests] == [
        "token",
        "gemini-3.5-flash:streamGenerateContent",
        "gemini-3.5-flash:streamGenerateContent",
    ]
    assert [received.headers.get("authorization") for received in loopback_gemini.requests[1:]] == [
        "Bearer token-1"
    ] * 2
    assert "x-goog-api-key" not in loopback_gemini.requests[1].headers


async def test_token_is_renewed_before_it_expires(loopback_gemini: LoopbackGemini) -> None:
    client = model(loopback_gemini)
    for token in ("token-1", "token-2"):
        give_token(loopback_gemini, token, lives=1)
        loopback_gemini.say("ok")
        answer(await call(client))
    used = [each.headers["authorization"] for each in loopback_gemini.requests if "generate" in each.path.lower()]
    assert used == ["Bearer token-1", "Bearer token-2"]


@pytest.mark.parametrize(
    ("options", "variables", "place"),
    [
        ({}, {}, "account-project/locations/global"),
        ({}, {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "us-east5"}, "p/locations/us-east5"),
        ({"project": "q", "location": "europe-west4"}, {"GOOGLE_CLOUD_PROJECT": "p"}, "q/locations/europe-west4"),
    ],
)
async def test_path_has_project_and_location(
    loopback_gemini: LoopbackGemini, options: Any, variables: dict[str, str], place: str
) -> None:
    give_token(loopback_gemini, "token-1")
    loopback_gemini.say("ok")
    answer(await call(model(loopback_gemini, variables, **options), request(stream=False)))
    path = loopback_gemini.requests[-1].path
    assert path == f"/v1beta/projects/{place}/publishers/google/models/gemini-3.5-flash:generateContent"


async def test_token_is_asked_for_through_the_proxy(loopback_gemini: LoopbackGemini, account: Path) -> None:
    fields = json.loads(account.read_text(encoding="utf-8"))
    account.write_text(json.dumps(fields | {"token_uri": "http://tokens.example/give/"}), encoding="utf-8")
    give_token(loopback_gemini, "token-1")
    loopback_gemini.say("ok")
    proxy = loopback_gemini.base_url.removesuffix("/v1beta")
    assert answer(await call(model(loopback_gemini, http=Http(proxy=proxy)))).text == "ok"
    asked = loopback_gemini.requests[0]
    assert (asked.headers["host"], asked.path) == ("tokens.example", "/give/")


async def test_token_server_that_cannot_be_reached_is_asked_again(
    loopback_gemini: LoopbackGemini, account: Path
) -> None:
    fields = json.loads(account.read_text(encoding="utf-8"))
    account.write_text(json.dumps(fields | {"token_uri": "http://127.0.0.1:9/token"}), encoding="utf-8")
    error = failure(await call(model(loopback_gemini)))
    assert error.kind == "timeout"
    assert "Google's token server can't be reached" in error.message


async def test_token_comes_while_no_thread_of_the_loops_own_is_free(
    loopback_gemini: LoopbackGemini, account: Path
) -> None:
    fields = json.loads(account.read_text(encoding="utf-8"))
    by_name = loopback_gemini.base_url.replace("127.0.0.1", "localhost")
    account.write_text(json.dumps(fields | {"token_uri": f"{by_name}/token"}), encoding="utf-8")
    give_token(loopback_gemini, "token-1")
    loopback_gemini.say("ok")
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    assert answer(await call(model(loopback_gemini))).text == "ok"


async def test_requests_of_other_methods_are_sent_as_google_auth_makes_them(
    loopback_gemini: LoopbackGemini, account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Raw(whole(b"no such token", status="403 Forbidden")) as server:
        metadata = {"environment_id": "aws1", "regional_cred_verification_url": "https://sts.example"}
        metadata |= {name: f"{server.url}/{name}" for name in ("region_url", "url", "imdsv2_session_token_url")}
        fields = {
            "type": "external_account",
            "audience": "//iam.googleapis.com/locations/global/workloadIdentityPools/p/providers/aws",
            "subject_token_type": "urn:ietf:params:aws:token-type:aws4_request",
            "token_url": "https://sts.googleapis.com/v1/token",
            "credential_source": metadata,
        }
        account.write_text(json.dumps(fields), encoding="utf-8")
        for variable in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(variable, raising=False)
        error = failure(await call(model(loopback_gemini, project="p")))
        [asked] = server.heard
    assert "no such token" in error.message
    assert asked.startswith(b"PUT /imdsv2_session_token_url HTTP/1.1\r\n")


async def test_refused_credentials_are_a_failure(loopback_gemini: LoopbackGemini) -> None:
    loopback_gemini.fail(400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."})
    error = failure(await call(model(loopback_gemini)))
    assert error.kind == "auth"
    assert error.message.startswith("vertex:gemini-3.5-flash: Vertex AI isn't set up: ")
    assert "Invalid JWT Signature" in error.message


@pytest.mark.parametrize("content", ["", "{", '{"type": "of tomorrow"}'])
async def test_file_without_credentials_is_a_failure(
    loopback_gemini: LoopbackGemini, account: Path, content: str
) -> None:
    account.write_text(content, encoding="utf-8")
    error = failure(await call(model(loopback_gemini)))
    assert error.kind == "auth"
    assert str(account) in error.message
    assert not loopback_gemini.requests


async def test_file_that_cannot_be_read_is_a_failure(loopback_gemini: LoopbackGemini, account: Path) -> None:
    account.unlink()
    account.mkdir()
    error = failure(await call(model(loopback_gemini)))
    assert (error.kind, str(account) in error.message) == ("auth", True)


async def test_models_are_not_asked_for_without_credentials(loopback_gemini: LoopbackGemini) -> None:
    with pytest.raises(ModelError, match="Vertex AI lists models elsewhere"):
        await model(loopback_gemini).served()
    assert not loopback_gemini.requests


async def test_ids_of_other_providers_calls_are_left_out(loopback_gemini: LoopbackGemini) -> None:
    give_token(loopback_gemini, "token-1")
    loopback_gemini.say("ok")
    called = AssistantMessage([ToolCall("toolu_01", "read", {})])
    said = UserMessage([Text("Read")]), called, ToolResult("toolu_01", "read", [Text("words")])
    answer(await call(model(loopback_gemini), request(*said)))
    [_, calls, results] = loopback_gemini.requests[-1].json["contents"]
    assert calls["parts"][0]["functionCall"] == {"name": "read", "args": {}}
    assert results["parts"][0]["functionResponse"] == {"name": "read", "response": {"output": "words"}}


async def test_turn_on_vertex(loopback_gemini: LoopbackGemini, tmp_path: Path) -> None:
    give_token(loopback_gemini, "token-1")
    loopback_gemini.say(AssistantMessage([Text("Yes."), Opaque("vertex", {"thoughtSignature": "c2ln"})]), "And yes.")
    overrides = {
        "model": "vertex:gemini-3.5-flash",
        "providers": {"vertex": {"base_url": loopback_gemini.base_url, "project": "p", "location": "us-east5"}},
    }
    config = load_config(home=tmp_path, environ={}, cwd=tmp_path, overrides=overrides)
    async with Agent(config, tools=[], environ={}) as agent:
        for _ in range(2):
            result = await run_agent("Is it?", session_key="work", agent=agent)
    assert result.reply == "And yes."
    last = loopback_gemini.requests[-1]
    assert "/projects/p/locations/us-east5/" in last.path
    assert last.json["contents"][1] == {"role": "model", "parts": [{"text": "Yes.", "thoughtSignature": "c2ln"}]}
