"""What providers say when they refuse, and what it means."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from denizen.errors import ErrorKind
from denizen.models.failures import MAX_MESSAGE_CHARS, MAX_RETRY_AFTER_S, ModelIdentity, read_complaint, retry_after

NOON = datetime(2026, 2, 3, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "auth"),
        (402, "billing"),
        (403, "auth"),
        (408, "timeout"),
        (409, "timeout"),
        (413, "context_overflow"),
        (425, "timeout"),
        (429, "rate_limit"),
        (500, "timeout"),
        (502, "timeout"),
        (503, "timeout"),
        (504, "timeout"),
        (529, "timeout"),
        (400, "unknown"),
        (404, "unknown"),
        (422, "unknown"),
        (302, "unknown"),
        (451, "unknown"),
    ],
)
def test_status_alone_decides(status: int, kind: ErrorKind) -> None:
    assert read_complaint(status, b"").kind == kind


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),  # Anthropic
        (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
        (413, "Request exceeds the maximum size"),
        (400, "Request payload size exceeds the limit: 20971520 bytes."),  # Gemini
        (
            400,
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
        ),
        (400, "Your input exceeds the context window of this model. Please adjust your input and try again."),  # OpenAI
        (400, "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens"),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),  # Gemini
        (400, "Please reduce the length of the messages or completion."),  # Groq
        (413, "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce"),
        (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),  # xAI
        (400, "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"),
        (422, "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000"),  # TGI
        (422, "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4000 + 512"),  # Together
        (400, "The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
        (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."),  # vLLM
        (400, "request (8000 tokens) exceeds the available context size (4096 tokens), try increasing it"),  # llama.cpp
        (500, "the request exceeds the available context size"),
        (400, "prompt too long; exceeded max context length by 4096 tokens"),  # Ollama
        (400, "The number of tokens to keep from the initial prompt is greater than the context length"),  # LM Studio
        (400, "Input is too long for requested model."),  # Bedrock
        (400, "too many total text bytes: 30000000 > 25000000"),
        (400, "Your request exceeded model token limit: 262144 (requested: 300000)"),  # Kimi
        (400, "Range of input length should be [1, 129024]"),  # Alibaba
        (400, "prompt token count of 140000 exceeds the limit of 128000"),  # Copilot
        (400, "Prompt exceeds max length"),  # Z.ai
        (400, "invalid params, context window exceeds limit (2013)"),  # MiniMax
        (429, "Request too large for gpt-4o: Limit 30000, Requested 40000. The input or output tokens must be reduced"),
    ],
)
def test_every_provider_has_its_words_for_a_context_that_is_too_long(status: int, sentence: str) -> None:
    assert read_complaint(status, {"error": {"message": sentence}}).kind == "context_overflow"


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, {"code": "context_length_exceeded", "message": "Too much"}, "context_overflow"),
        (400, {"type": "exceed_context_size_error", "message": "no"}, "context_overflow"),
        (429, {"code": "insufficient_quota", "message": "You exceeded your current quota"}, "quota"),
        (429, {"status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota"}, "rate_limit"),  # Gemini
        (
            400,
            {"type": "invalid_request_error", "message": "Your credit balance is too low to access the API"},
            "billing",
        ),
        (402, {"message": "Insufficient Balance"}, "billing"),
        (403, {"message": "Your team has used all available credits or reached its monthly spending limit"}, "billing"),
        (403, {"message": "Your team doesn't have any credits. You can purchase credits on x.ai."}, "billing"),  # xAI
        (429, {"message": "This would exceed your rate limit. Please reduce the prompt length"}, "rate_limit"),
        (400, {"status": "INVALID_ARGUMENT", "message": "API key not valid. Please pass a valid API key."}, "auth"),
        (400, {"message": "The upstream server timed out"}, "timeout"),
        (400, {"code": "tool_use_failed", "message": "Failed to call a function."}, "timeout"),  # Groq
        (400, {"message": "Monthly quota reached"}, "quota"),
        (400, {"message": "max_tokens must be at least 1"}, "unknown"),
        (401, {"message": "the token for context window tools is wrong"}, "auth"),
    ],
)
def test_words_and_codes_say_more_than_the_status(status: int, error: dict[str, Any], kind: ErrorKind) -> None:
    assert read_complaint(status, {"error": error}).kind == kind


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "timeout", 529),
        ({"type": "rate_limit_error", "message": "Slow down"}, "rate_limit", 429),
        ({"type": "api_error", "message": "Oops"}, "timeout", 500),
        ({"type": "authentication_error", "message": "Who?"}, "auth", 401),
        ({"type": "invalid_request_error", "message": "prompt is too long"}, "context_overflow", 400),
        ({"type": "request_too_large", "message": "no"}, "context_overflow", 413),
        ({"code": 429, "message": "Rate limited"}, "rate_limit", 429),
        ({"code": "502", "message": "Bad gateway"}, "timeout", 502),
        ({"code": "server_error", "message": "Oops"}, "timeout", 500),
        ({"message": "upstream connect error"}, "timeout", 0),
        ("something odd", "unknown", 0),
    ],
)
def test_error_inside_a_stream_means_what_its_status_would(error: Any, kind: ErrorKind, status: int) -> None:
    complaint = read_complaint(200, {"error": error})
    assert (complaint.kind, complaint.status) == (kind, status)


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "No such model"}},
        {"type": "error", "error": {"type": "not_found_error", "message": "No such model"}},
        {"error": {"error": {"message": "No such model"}}},
        {"error": "No such model"},
        {"object": "error", "message": "No such model", "code": 404},
        {"detail": "No such model"},
        {"detail": [{"loc": ["body"], "msg": "No such model"}]},
        {"message": {"detail": "No such model"}},
        [{"error": {"code": 404, "message": "No such model", "status": "NOT_FOUND"}}],
        "No such model",
    ],
)
def test_sentence_is_found_in_every_shape(body: Any) -> None:
    assert read_complaint(404, json.dumps(body).encode()).text == "No such model"


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b"null", b"<html>down</html>", b'{"error": {}}', b'{"error": null}']
)
def test_without_a_sentence_the_status_speaks(body: bytes) -> None:
    assert read_complaint(502, body).text == "Bad Gateway"
    assert read_complaint(599, body).text == "no reason given"


def test_plain_words_are_taken_and_a_page_is_cut_short() -> None:
    assert read_complaint(500, b" upstream is down \n").text == "upstream is down"
    assert len(read_complaint(500, b"x" * 100_000).text) < 1000
    assert read_complaint(500, b"caf\xe9").text == "caf\ufffd"


def test_several_lines_are_reported_in_one_and_a_trace_by_its_last() -> None:
    assert read_complaint(400, b"No such field:\n\n  `seeds`").text == "No such field: `seeds`"
    trace = "Traceback (most recent call last):\n  File 'serve.py', line 1, in chat\nValueError: no such field\n"
    assert read_complaint(500, json.dumps({"detail": trace}).encode()).text == "ValueError: no such field"


def test_page_is_reported_by_its_title() -> None:
    page = b"<!doctype html><head><title>\n502 Bad &amp; sad\ngateway</title></head><h1>Long</h1>"
    assert read_complaint(502, page).text == "Bad & sad gateway"
    assert read_complaint(502, b"<html><title>502 </title>").text == "Bad Gateway"


@pytest.mark.parametrize(("status", "text"), [(529, "Overloaded"), (522, "Connection Timed Out")])
def test_status_that_no_standard_knows_has_words_too(status: int, text: str) -> None:
    assert read_complaint(status, b"").text == text


def test_router_names_the_cause() -> None:
    raw = json.dumps({"error": {"message": "The model is loading"}})
    body = {"error": {"code": 503, "message": "Provider returned error", "metadata": {"raw": raw}}}
    assert read_complaint(503, body).text == "Provider returned error: The model is loading"


def test_failure_says_who_and_what_and_keeps_the_key_to_itself() -> None:
    origin = ModelIdentity("openai:gpt-5", "openai", "spare", "sk-canary-1234")
    error = origin.refused({"error": {"message": "Incorrect API key provided: sk-canary-1234"}}, 401)
    assert error.message == "openai:gpt-5: Incorrect API key provided: *** (HTTP 401)"
    assert str(error) == error.message
    assert (error.kind, error.status, error.provider, error.profile_id) == ("auth", 401, "openai", "spare")


def test_key_that_is_where_a_long_sentence_is_cut_is_hidden_too() -> None:
    origin = ModelIdentity("openai:gpt-5", "openai", "spare", "sk-canary-1234")
    error = origin.refused({"error": {"message": "x" * (MAX_MESSAGE_CHARS - 5) + "sk-canary-1234"}}, 401)
    assert "sk-" not in error.message


@pytest.mark.parametrize("nest", [b"[", b'{"error":', b'{"detail":{"message":'])
@pytest.mark.parametrize("depth", [900, 100_000])
def test_error_in_an_error_is_read_however_deep(nest: bytes, depth: int) -> None:
    assert read_complaint(503, nest * depth).kind == "timeout"
    closing = (b"]" if nest == b"[" else b"}" * nest.count(b"{")) * depth
    assert read_complaint(503, nest * depth + b'"Down"' + closing).kind == "timeout"


@pytest.mark.parametrize(
    ("status", "text", "seconds"),
    [
        (429, "You exceeded your current quota. Please retry in 37.5s.", 37.5),  # Gemini
        (429, "Rate limit reached on tokens per day. Please try again in 1h7m12.25s. Need more?", 4032.25),  # Groq
        (429, "Rate limit reached. Please try again in 450ms.", 0.45),  # OpenAI
        (429, "Please try again in 20 seconds", 20.0),
        (503, "Try again in 2m", 120.0),
        (429, "Please try again in a while", None),
        (401, "Please try again in 20s", None),
    ],
)
def test_wish_to_wait_is_read_from_the_words_too(status: int, text: str, seconds: float | None) -> None:
    error = ModelIdentity("m", "p").refused({"error": {"message": text}}, status)
    assert error.retry_after == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "Tue, 03 Feb 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Tue, 03 Feb 2026 12:00:30 GMT", "date": "Tue, 03 Feb 2026 12:00:20 GMT"}, 10.0),
        ({"retry-after": "Tue, 03 Feb 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "1e300"}, MAX_RETRY_AFTER_S),
        ({"retry-after": "Tue, 03 Feb 9999 12:00:30 GMT"}, MAX_RETRY_AFTER_S),
        ({"retry-after": "Tue, 03 Feb 2026 12:00:30 +99999999999999999999"}, None),
        ({"retry-after": "Tue, 03 Feb 99999999999999999999 12:00:30 GMT"}, None),
    ],
)
def test_wish_to_wait_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOON) == seconds


@pytest.mark.parametrize(
    ("sentence", "window"),
    [
        ("This model's maximum context length is 16384 tokens. However, you requested 24592 tokens.", 16_384),
        ("max_tokens is too large: 8192. This model's maximum context length is 16384 tokens.", 16_384),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
        ("input length and `max_tokens` exceed context limit: 199990 + 8192 > 200000, decrease them", 200_000),
        ("request (20000 tokens) exceeds the available context size (16384 tokens), try increasing it", 16_384),
        ("The model is loaded with context length of only 4096 tokens, which is not enough.", 4_096),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 and 512", 4_096),
        ("Range of input length should be [1, 6000]", 6_000),
        ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 32_768),
        ("Your request exceeded model token limit: 8192", 8_192),
        ("prompt token count of 150000 exceeds the limit of 128000", 128_000),
        ("prompt too long; exceeded max context length by 1234 tokens", 0),
        ("Context size has been exceeded.", 0),
        ("context shift is disabled", 0),
    ],
)
def test_window_is_read_from_a_refusal(sentence: str, window: int) -> None:
    error = ModelIdentity("p:m", "p").refused({"error": {"message": sentence}})
    assert (error.kind, error.window) == ("context_overflow", window)


def test_window_is_read_from_llamacpps_field() -> None:
    told = {"code": 400, "message": "the request exceeds the available context size", "n_ctx": 8192}
    assert ModelIdentity("p:m", "p").refused({"error": told}).window == 8_192


@pytest.mark.parametrize(
    ("sentence", "longest"),
    [
        ("max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for claude-3-opus", 4_096),
        ("max_tokens is too large: 100000. This model supports at most 16384 completion tokens.", 16_384),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8_192),
        ("`max_tokens` must be less than or equal to `8192`, the maximum value", 8_192),
        ("The maximum tokens you requested exceeds the model limit of 4096. Try a lower value.", 4_096),
        ("max_tokens must be at least 1", 0),
    ],
)
def test_longest_answer_is_read_from_a_refusal(sentence: str, longest: int) -> None:
    assert ModelIdentity("p:m", "p").refused({"error": {"message": sentence}}, 400).max_output == longest


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=8192 cannot be greater than max_model_len=512. Please request fewer output tokens.",
        "the prompt (5000 tokens) exceeds n_ctx_slot (512)",
        "request (9876 tokens) exceeds the available context size (512 tokens), try increasing it",
        "The decoder prompt (length 5000) is longer than the maximum model length of 512.",
    ],
)
def test_local_servers_name_their_window_in_the_first_refusal(text: str) -> None:
    error = ModelIdentity("vllm:m", "vllm").refused({"message": text}, 400)
    assert (error.kind, error.window) == ("context_overflow", 512)
