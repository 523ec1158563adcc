"""The offline model keeps notes, says what it can do and what it can't, and is a model like any other."""

from typing import Any

import pytest
from tests.models.offline.workshop import Ask

from denizen.events import Finished, LlmStream, TextDelta, ToolStart
from denizen.messages import Message, Text, ToolResult, UserMessage
from denizen.models.offline import OfflineModel
from denizen.ports import ModelRequest, Schema


async def test_remembers_and_recalls(ask: Ask) -> None:
    assert (await ask("What do you remember?")).reply == "I remember nothing."
    assert (await ask("Please remember that it's the 3rd door, not the 2nd.")).reply.startswith(
        "I'll remember: it's the 3rd door, not the 2nd."
    )
    await ask("remember: tea at five")
    assert (await ask("what do you remember about windows? ")).reply.startswith("I remember nothing about windows")
    assert "it's the 3rd door" in (await ask("do you remember the door?")).reply
    for question in ("what do you remember?", "what did I ask you to remember"):
        assert "tea at five" in (await ask(question)).reply


@pytest.mark.parametrize(
    ("question", "beginning"),
    [
        (
            "What is the meaning of life?",
            "I can't answer “What is the meaning of life”: I'm rules, not a language model.",
        ),
        ("Please write a poem about lamps!", "I can't write a poem about lamps: I'm rules, not a language model."),
        ("Could you fix `cart.py`?", "I can't fix cart.py: I'm rules, not a language model."),
        (
            "What does README.md say about lamps?",
            "I can't answer “What does README.md say about lamps”: I'm rules, not a language model.",
        ),
        ("are you a language model?", "I can't answer “are you a language model”: I'm rules, not a language model."),
        ("why " * 200, "I can't answer “" + ("why " * 20).rstrip() + " …”: I'm rules, not a language model."),
        (
            "",
            "I'm Denizen's offline model: rules, not a language model, and there is nothing in that for me to look up.",
        ),
        ("?!", "I'm Denizen's offline model: rules, not a language model, and there is nothing in that"),
    ],
)
async def test_declines_in_the_users_own_terms_and_says_what_to_set_up(ask: Ask, question: str, beginning: str) -> None:
    result = await ask(question)
    assert result.reply.startswith(beginning)
    assert "ANTHROPIC_API_KEY" in result.reply
    assert "local model server" in result.reply
    assert result.iterations == 1


@pytest.mark.parametrize("question", ["Who implements Basket?", "What depends on httpx?", "How does checkout work?"])
async def test_declines_what_only_sounds_like_a_question_it_knows(ask: Ask, question: str) -> None:
    assert (await ask(question)).reply.startswith(f"I can't answer “{question.rstrip('?')}”")


@pytest.mark.parametrize("greeting", ["hi", "Hello!", "Hey there", "good morning", "hello denizen"])
async def test_greets_and_says_what_can_be_asked(ask: Ask, greeting: str) -> None:
    reply = (await ask(greeting)).reply
    assert reply.startswith("Hello! I'm Denizen's offline model: rules, not a language model.")
    assert "- What are the dependencies?" in reply


@pytest.mark.parametrize("question", ["What can you do?", "who are you?", "help", "what can I ask you?"])
async def test_says_what_can_be_asked(ask: Ask, question: str) -> None:
    reply = (await ask(question)).reply
    assert reply.startswith("I'm Denizen's offline model: rules, not a language model. I understand questions like")


@pytest.mark.parametrize(
    "question",
    [
        "What language is this project?",
        "List the files",
        "What does src contain?",
        "What does the README contain?",
        "What are the dependencies?",
        "What is it about?",
        "What is the licence?",
        "Who wrote it?",
        "What is the largest file?",
        "Who calls price_of?",
        "How do I run the tests?",
        "Where is price_of defined?",
        "What changed recently?",
        "What do you remember?",
    ],
)
async def test_understands_what_it_says_can_be_asked(ask: Ask, question: str) -> None:
    assert any(isinstance(message, ToolResult) for message in (await ask(question)).messages)


async def test_costs_nothing_and_counts_no_tokens(ask: Ask) -> None:
    usage = (await ask("list the files")).usage
    assert (usage.cost_usd, usage.input, usage.output) == (0.0, None, None)


async def test_streams_small_pieces_that_are_the_reply(ask: Ask) -> None:
    events: list[Any] = []
    result = await ask("what language is this?", on_event=events.append)
    deltas = [each.event.delta for each in events if isinstance(each, LlmStream) and isinstance(each.event, TextDelta)]
    assert "".join(deltas) == result.reply
    assert max(map(len, deltas)) < 30
    assert [each.tool_name for each in events if isinstance(each, ToolStart)] == ["find"]


async def test_names_the_tool_that_is_missing(ask: Ask) -> None:
    result = await ask("list the files", tools=[])
    assert result.reply == "I need the tool `find` for that, and this session has none."


async def test_only_the_last_message_counts(ask: Ask) -> None:
    await ask("where is PriceList defined?", session_key="shop")
    assert (await ask("what language is this?", session_key="shop")).reply.startswith("This project has 7 source files")


async def test_says_that_it_cannot_answer_in_a_form(ask: Ask) -> None:
    request = ModelRequest([UserMessage([Text("list the files")])], output_schema={"type": "object"})
    [event] = [event async for event in OfflineModel().stream(request)]
    assert isinstance(event, Finished)
    assert "can't answer in the form" in event.message.text


async def test_same_messages_bring_the_same_calls() -> None:
    messages: list[Message] = [UserMessage([Text("list the files")])]
    request = ModelRequest(messages, tools=[Schema("find", "", {})])
    first, second = [[event async for event in OfflineModel().stream(request)] for _ in range(2)]
    assert first == second
    messages += [*messages, *messages]
    [later] = [event async for event in OfflineModel().stream(request)]
    assert isinstance(later, Finished)
    assert later != first[0]
