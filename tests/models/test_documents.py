"""Documents, as each format sends them: files where the provider takes them, else their text."""

import base64
import json
from typing import Any

import pytest
from tests.documents import LINE, PAPER
from tests.models import chat
from tests.models.calls import answer, call, failure, request

from denizen.messages import AssistantMessage, Document, Text, ToolCall, ToolResult, UserMessage
from denizen.models.anthropic import AnthropicModel
from denizen.models.gemini import GeminiModel
from denizen.models.providers import Provider
from denizen.testing import LoopbackAnthropic, LoopbackGemini, LoopbackOpenAI

DATA = base64.b64encode(PAPER.data).decode()
FILE = {"type": "file", "file": {"filename": "bridge.pdf", "file_data": f"data:application/pdf;base64,{DATA}"}}
NATIVE = {
    "type": "document",
    "source": {"type": "base64", "media_type": "application/pdf", "data": DATA},
    "title": "bridge.pdf",
}
ASKED = UserMessage([Text("Is it open?"), PAPER])
CALLED = AssistantMessage([ToolCall("c1", "find", {})])
FOUND = ToolResult("c1", "find", [Text("one"), PAPER])
AS_TEXT = "[the text of bridge.pdf, 2 pages;"


async def sent_to_anthropic(server: LoopbackAnthropic, *messages: Any, provider: Provider | None = None) -> Any:
    server.say("ok")
    model = AnthropicModel("claude-sonnet-4-5", provider, api_key="key-0123456789", base_url=server.base_url)
    answer(await call(model, request(*messages)))
    sent = server.requests[-1].json["messages"]
    for message in sent:
        for block in message["content"]:
            block.pop("cache_control", None)
    return sent


async def test_anthropic_takes_pdf_and_text(loopback_anthropic: LoopbackAnthropic) -> None:
    notes = Document("text/plain", "schön".encode(), "n.txt")
    [said] = await sent_to_anthropic(loopback_anthropic, UserMessage([Text("Is it open?"), PAPER, notes]))
    plain = {"type": "text", "media_type": "text/plain", "data": "schön"}
    assert said["content"][1:] == [NATIVE, {"type": "document", "source": plain, "title": "n.txt"}]


async def test_anthropic_takes_documents_in_results(loopback_anthropic: LoopbackAnthropic) -> None:
    *_, results = await sent_to_anthropic(loopback_anthropic, ASKED, CALLED, FOUND)
    assert results["content"][0]["content"] == [{"type": "text", "text": "one"}, NATIVE]


async def test_another_server_of_that_format_is_sent_the_text(loopback_anthropic: LoopbackAnthropic) -> None:
    [said] = await sent_to_anthropic(loopback_anthropic, ASKED, provider=Provider("office", api="anthropic"))
    assert AS_TEXT in said["content"][1]["text"]
    assert LINE in said["content"][1]["text"]


@pytest.mark.parametrize("provider", ["openai", "openrouter"])
async def test_chat_completions_take_files_where_the_provider_does(
    loopback_openai: LoopbackOpenAI, provider: str
) -> None:
    body = await chat.sent(loopback_openai, request(ASKED, CALLED, FOUND), provider)
    asked, _, result, below = body["messages"]
    assert asked["content"] == [{"type": "text", "text": "Is it open?"}, FILE]
    assert result["content"] == "one"
    assert below["content"] == [{"type": "text", "text": "The document from find:"}, FILE]


@pytest.mark.parametrize("provider", ["mistral", "deepseek", "ollama", "office"])
async def test_other_providers_are_sent_the_text(loopback_openai: LoopbackOpenAI, provider: str) -> None:
    body = await chat.sent(loopback_openai, request(ASKED, CALLED, FOUND), provider)
    said = json.dumps(body["messages"])
    assert DATA not in said
    assert said.count(LINE) == 2
    assert AS_TEXT in next(each["content"] for each in body["messages"] if each["role"] == "tool")


async def test_a_model_that_refuses_files_is_sent_the_text(loopback_openai: LoopbackOpenAI) -> None:
    loopback_openai.fail(400, "Invalid value: 'file'. Supported values are: 'text' and 'image_url'.")
    body = await chat.sent(loopback_openai, request(ASKED))
    assert [DATA in json.dumps(each.json) for each in loopback_openai.requests] == [True, False]
    assert AS_TEXT in json.dumps(body["messages"])


@pytest.mark.parametrize(
    "sentence",
    [
        "messages.0.content.1.pdf.source.base64.data: The PDF specified is password protected.",
        "The PDF specified was not valid.",
        "Could not process PDF",
        "A maximum of 100 PDF pages may be provided.",
    ],
)
async def test_a_document_that_the_provider_cannot_read_is_sent_as_text(
    loopback_anthropic: LoopbackAnthropic, sentence: str
) -> None:
    loopback_anthropic.fail(400, {"type": "error", "error": {"type": "invalid_request_error", "message": sentence}})
    [said] = await sent_to_anthropic(loopback_anthropic, ASKED)
    assert [DATA in json.dumps(each.json) for each in loopback_anthropic.requests] == [True, False]
    assert LINE in said["content"][1]["text"]


async def test_other_refusals_leave_documents_as_they_are(loopback_anthropic: LoopbackAnthropic) -> None:
    loopback_anthropic.fail(400, "messages: roles must alternate")
    model = AnthropicModel("claude-sonnet-4-5", api_key="key-0123456789", base_url=loopback_anthropic.base_url)
    assert failure(await call(model, request(ASKED))).status == 400
    assert len(loopback_anthropic.requests) == 1


async def test_a_document_without_pages_is_sent_to_gemini_as_text(loopback_gemini: LoopbackGemini) -> None:
    loopback_gemini.fail(400, "The document has no pages.")
    loopback_gemini.say("ok")
    model = GeminiModel("gemini-3.5-flash", api_key="key-0123456789", base_url=loopback_gemini.base_url)
    answer(await call(model, request(ASKED)))
    assert [DATA in json.dumps(each.json) for each in loopback_gemini.requests] == [True, False]
