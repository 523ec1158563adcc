"""The agent by the Responses API, as the official SDK speaks it."""

from pathlib import Path
from typing import Any

import openai
import pytest
from tests.engine.scene import call
from tests.worlds.chat.conftest import Serve, said
from tests.worlds.chat.test_completions import heard, sdk

WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "description": "The weather of a town.",
    "parameters": {"type": "object", "properties": {"town": {"type": "string"}}},
    "strict": False,
}
SESSIONS = pytest.mark.parametrize("session", ["", "ann"])


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
