"""Typed answers."""

import msgspec
import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import requests_of, say

from denizen import run_agent
from denizen.errors import ConfigError, OutputError
from denizen.messages import UserMessage


class City(msgspec.Struct):
    """A city and how many live there."""

    name: str
    people: int


async def test_an_answer_of_the_asked_type_is_returned_as_one(agent_of: MakeAgent) -> None:
    agent = agent_of(say('{"name": "Rome", "people": 2800000}'))
    result = await run_agent("which city?", agent=agent, output=City)
    assert result.output == City("Rome", 2_800_000)


async def test_the_model_is_told_the_schema(agent_of: MakeAgent) -> None:
    agent = agent_of(say('{"name": "Rome", "people": 1}'))
    await run_agent("which city?", agent=agent, output=City)
    request = requests_of(agent)[0]
    assert '"people"' in request.messages[0].text
    assert request.output_schema is not None
    assert set(request.output_schema["properties"]) == {"name", "people"}


async def test_a_fence_around_the_answer_does_no_harm(agent_of: MakeAgent) -> None:
    agent = agent_of(say('```json\n{"name": "Rome", "people": 1}\n```'))
    assert (await run_agent("which?", agent=agent, output=City)).output == City("Rome", 1)


async def test_a_wrong_answer_is_told_to_the_model_which_tries_again(agent_of: MakeAgent) -> None:
    agent = agent_of(say('{"name": "Rome"}'), say('{"name": "Rome", "people": 5}'))
    result = await run_agent("which?", agent=agent, output=City)
    assert result.output == City("Rome", 5)
    told = [message.text for message in requests_of(agent)[1].messages if isinstance(message, UserMessage)]
    assert "missing required field `people`" in told[-1]


async def test_after_three_wrong_answers_the_turn_fails(agent_of: MakeAgent) -> None:
    agent = agent_of(say("Rome"), say("Rome!"), say("ROME"))
    with pytest.raises(OutputError):
        await run_agent("which?", agent=agent, output=City)


async def test_a_json_schema_is_enforced_too(agent_of: MakeAgent) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}, "required": ["n"]}
    agent = agent_of(say('{"n": 1}'), say('{"n": 7}'))
    assert (await run_agent("n?", agent=agent, output=schema)).output == {"n": 7}


async def test_a_schema_that_is_none_is_refused(agent_of: MakeAgent) -> None:
    with pytest.raises(ConfigError, match="no JSON schema"):
        await run_agent("n?", agent=agent_of(say("1")), output={"type": "integr"})


async def test_plain_types_work_as_well(agent_of: MakeAgent) -> None:
    agent = agent_of(say("[1, 2, 3]"))
    assert (await run_agent("numbers", agent=agent, output=list[int])).output == [1, 2, 3]
