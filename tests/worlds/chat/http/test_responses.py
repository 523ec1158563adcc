"""The agent by the Responses API, as the official SDK speaks it."""

from pathlib import Path
from typing import Any

import openai
import pytest
from tests.engine.scene import call
from tests.worlds.chat.conftest import Serve, said
from tests.worlds.chat.http.test_completions import heard, sdk

from denizen.messages import AssistantMessage, Text, Thinking, ToolCall

WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "description": "The weather of a town.",
    "parameters": {"type": "object", "properties": {"town": {"type": "string"}}},
    "strict": False,
}
SESSIONS = pytest.mark.parametrize("session", ["", "ann"])


async def test_answer_fulfils_the_schema_that_is_asked_for(serve: Serve, home: Path) -> None:
    schema = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
    wanted: Any = {"format": {"type": "json_schema", "name": "size", "schema": schema}}
    async with serve("it is large", '{"size": 3}') as scene, sdk(scene, home) as client:
        answer = await client.responses.create(model="denizen", input="how large?", text=wanted)
        assert answer.output_text == '{"size":3}'


@SESSIONS
async def test_text_is_answered(serve: Serve, home: Path, session: str) -> None:
    async with serve("plum") as scene, sdk(scene, home, session) as client:
        answer = await client.responses.create(model="denizen", input="a fruit?", instructions="In a word.")
        assert (answer.output_text, answer.status) == ("plum", "completed")
        assert "In a word." in said(scene.model)


async def test_conversation_is_the_whole_history(serve: Serve, home: Path) -> None:
    async with serve("still plum") as scene, sdk(scene, home) as client:
        history: Any = [
            {"role": "user", "content": [{"type": "input_text", "text": "a fruit?"}]},
            {"role": "assistant", "content": [{"type": "output_text", "text": "plum"}]},
            {"role": "user", "content": "sure?"},
        ]
        assert (await client.responses.create(model="denizen", input=history)).output_text == "still plum"
        assert heard(scene) == ["a fruit?", "plum", "sure?"]
        assert not await scene.gateway.agent.record.store.list()


async def test_answer_streams(serve: Serve, home: Path) -> None:
    async with serve("a plum, I say") as scene, sdk(scene, home) as client:
        deltas: list[str] = []
        async with client.responses.stream(model="denizen", input="a fruit?") as stream:
            async for event in stream:
                if event.type == "response.output_text.delta":
                    deltas.append(event.delta)
            final = await stream.get_final_response()
        assert len(deltas) > 1
        assert "".join(deltas) == final.output_text == "a plum, I say"


@pytest.mark.parametrize("stream", [False, True])
async def test_thoughts_are_items_of_their_own(serve: Serve, home: Path, *, stream: bool) -> None:
    first = AssistantMessage([Thinking("let me see"), Text("I look."), ToolCall("c1", "look", {})])
    second = AssistantMessage([Thinking("it is empty"), ToolCall("c2", "weather", {"town": "Oslo"})])
    async with serve(first, second, "rain") as scene, sdk(scene, home) as client:
        asked: Any = {"model": "denizen", "input": "?", "tools": [WEATHER]}
        events: list[Any] = []
        if stream:
            async with client.responses.stream(**asked) as told:
                events = [event async for event in told]
                answer: Any = await told.get_final_response()
        else:
            answer = await client.responses.create(**asked)
        summaries = [part.text for item in answer.output if item.type == "reasoning" for part in item.summary]
        assert summaries == ["let me see", "it is empty"]
        assert answer.output_text == "I look."
        deltas = [event.delta for event in events if event.type == "response.reasoning_summary_text.delta"]
        assert "".join(deltas) == "".join(summaries) * stream
        done = {event.output_index: event.item.id for event in events if event.type == "response.output_item.done"}
        assert [done[at] for at in sorted(done)] == [item.id for item in answer.output] * stream
        items: Any = [each.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for each in answer.output]
        result: Any = {"type": "function_call_output", "call_id": items[-1]["call_id"], "output": "it pours"}
        asked["input"] = [*items, result]
        assert (await client.responses.create(**asked)).output_text == "rain"


@SESSIONS
@pytest.mark.parametrize("stream", [False, True])
async def test_call_of_the_callers_tool_goes_on_with_its_result(
    serve: Serve, home: Path, session: str, *, stream: bool
) -> None:
    asks = call(("weather", {"town": "Oslo"}), text="I ask.")
    async with serve(asks, "rain") as scene, sdk(scene, home, session) as client:
        if stream:
            async with client.responses.stream(model="denizen", input="?", tools=[WEATHER]) as told:
                asked: Any = await told.get_final_response()
        else:
            asked = await client.responses.create(model="denizen", input="?", tools=[WEATHER])
        output: list[Any] = asked.output
        message, wanted = output
        assert (message.content[0].text, wanted.name, wanted.arguments) == ("I ask.", "weather", '{"town":"Oslo"}')
        result = {"type": "function_call_output", "call_id": wanted.call_id, "output": "it pours"}
        items: Any = [
            {"role": "user", "content": "?"},
            *(each.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for each in output),
            result,
        ]
        answer = await client.responses.create(model="denizen", input=items, tools=[WEATHER])
        assert answer.output_text == "rain"
        assert "it pours" in said(scene.model)


async def test_earlier_responses_are_not_kept(serve: Serve, home: Path) -> None:
    async with serve() as scene, sdk(scene, home) as client:
        with pytest.raises(openai.BadRequestError, match="Denizen-Session"):
            await client.responses.create(model="denizen", input="hi", previous_response_id="resp_1")
