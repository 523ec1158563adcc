"""Typed answers."""

from contextlib import suppress
from typing import Any, Literal

import msgspec
import pydantic
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


class Street(pydantic.BaseModel):
    """A street of a city."""

    name: str = pydantic.Field(min_length=3)
    city: "Town | None" = None


class Town(pydantic.BaseModel):
    """A smaller city."""

    people: int


async def test_an_answer_of_the_asked_type_is_returned_as_one(agent_of: MakeAgent) -> None:
    agent = agent_of(say('{"name": "Rome", "people": 2800000}'))
    result = await run_agent("which city?", agent=agent, output=City)
    assert result.output == City("Rome", 2_800_000)


async def test_the_model_gets_the_schema(agent_of: MakeAgent) -> None:
    agent = agent_of(say('{"name": "Rome", "people": 1}'))
    await run_agent("which city?", agent=agent, output=City)
    request = requests_of(agent)[0]
    assert '"people"' in request.messages[0].text
    assert request.output_schema is not None
    assert set(request.output_schema["properties"]) == {"name", "people"}


async def test_types_within_the_type_are_described_too(agent_of: MakeAgent) -> None:
    class Country(msgspec.Struct):
        capital: City

    agent = agent_of(say('{"capital": {"name": "Rome", "people": 1}}'))
    assert (await run_agent("which country?", agent=agent, output=Country)).output == Country(City("Rome", 1))
    told = requests_of(agent)[0].output_schema
    assert told is not None
    assert told["properties"]["capital"] == {"$ref": "#/$defs/City"}
    assert set(told["$defs"]["City"]["properties"]) == {"name", "people"}


async def test_a_fence_around_the_answer_does_no_harm(agent_of: MakeAgent) -> None:
    agent = agent_of(say('```json\n{"name": "Rome", "people": 1}\n```'))
    assert (await run_agent("which?", agent=agent, output=City)).output == City("Rome", 1)


async def test_a_wrong_answer_is_reported_to_the_model_which_tries_again(agent_of: MakeAgent) -> None:
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
    with pytest.raises(ConfigError, match="isn't valid JSON Schema"):
        await run_agent("n?", agent=agent_of(say("1")), output={"type": "integr"})


async def test_plain_types_work_as_well(agent_of: MakeAgent) -> None:
    agent = agent_of(say("[1, 2, 3]"))
    assert (await run_agent("numbers", agent=agent, output=list[int])).output == [1, 2, 3]


@pytest.mark.parametrize(
    ("kind", "reply", "value"),
    [
        (Street, '{"name": "Via Appia", "city": {"people": 3}}', Street(name="Via Appia", city=Town(people=3))),
        (list[Town], '[{"people": 3}]', [Town(people=3)]),
        (Street | Town, '{"people": 3}', Town(people=3)),
    ],
)
async def test_models_of_pydantic_are_types_too(agent_of: MakeAgent, kind: Any, reply: str, value: Any) -> None:
    assert (await run_agent("which?", agent=agent_of(say(reply)), output=kind)).output == value


async def test_what_is_wrong_with_a_model_of_pydantic_is_reported_in_one_line(agent_of: MakeAgent) -> None:
    agent = agent_of(say('{"name": "A"}'), say('{"name": "A1a", "city": {"people": "few"}}'), say('{"name": "A1a"}'))
    assert (await run_agent("which?", agent=agent, output=Street)).output == Street(name="A1a")
    first, second = (request.messages[-1].text for request in requests_of(agent)[1:])
    assert "String should have at least 3 characters - at `$.name`" in first
    assert "unable to parse string as an integer - at `$.city.people`" in second
    assert "http" not in first


@pytest.mark.parametrize(
    ("kind", "reply", "value"),
    [
        (str, "Rome, I think.", "Rome, I think."),
        (str, '"Rome"', "Rome"),
        (str, "42", "42"),
        (Literal["yes", "no"], "yes", "yes"),
        (int | str, "42", 42),
    ],
)
async def test_words_need_no_quotes(agent_of: MakeAgent, kind: Any, reply: str, value: Any) -> None:
    assert (await run_agent("which?", agent=agent_of(say(reply)), output=kind)).output == value


async def test_words_without_quotes_are_no_json_where_a_schema_asks_for_that(agent_of: MakeAgent) -> None:
    agent = agent_of(say("Rome"), say('"Rome"'))
    result = await run_agent("which?", agent=agent, output={"type": "string"})
    assert (result.output, result.iterations) == ("Rome", 2)


async def test_a_type_that_json_cannot_say_is_refused_by_its_name(agent_of: MakeAgent) -> None:
    with pytest.raises(TypeError, match="Agent"):
        await run_agent("which?", agent=agent_of(say("1")), output=type(agent_of()))


@pytest.mark.parametrize("kind", [list[int], int | str, Street | Town, Literal["[]"], {"type": "array"}])
async def test_providers_get_schemas_of_objects_alone(agent_of: MakeAgent, kind: Any) -> None:
    agent = agent_of(*[say("[]")] * 3)
    with suppress(OutputError):
        await run_agent("which?", agent=agent, output=kind)
    assert requests_of(agent)[0].output_schema is None
    assert "JSON schema" in requests_of(agent)[0].messages[0].text
