"""`@tool`: what a function becomes, what the model reads about it, and how its arguments are checked."""

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest

from denizen.errors import ToolRefused
from denizen.messages import Image, Text, ToolResult
from denizen.ports import ToolContext, Traits
from denizen.tools import tool

Call = Callable[..., Awaitable[ToolResult]]


class Stop(msgspec.Struct):
    title: str
    minutes: int = 5


class Guest(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(default=18, ge=0, description="In years")


@tool(traits=Traits.READS, shell_names=("trip",))
async def plan_trip(
    turn: ToolContext,
    to: str,
    people: Annotated[int, msgspec.Meta(ge=1)] = 2,
    *,
    by: Literal["train", "bus"] = "train",
    stops: list[Stop] = [],  # noqa: B006
    budget: float | None = None,
) -> str:
    """Plan a trip
    to a town.

    More for people who read the code.

    Args:
        to: The town,
            by its name
        people: How many go
    """
    return f"{turn.call_id}: {people} {by} to {to} by {[stop.title for stop in stops]} for {budget}"


def test_the_schema_comes_from_the_signature_and_the_docstring() -> None:
    assert plan_trip.name == "plan_trip"
    assert plan_trip.shell_names == ("trip",)
    assert plan_trip.traits == Traits.READS
    assert plan_trip.schema.description == "Plan a trip to a town."
    assert plan_trip.schema.parameters == {
        "type": "object",
        "properties": {
            "to": {"type": "string", "description": "The town, by its name"},
            "people": {"type": "integer", "minimum": 1, "default": 2, "description": "How many go"},
            "by": {"type": "string", "enum": ["bus", "train"], "default": "train"},
            "stops": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"title": {"type": "string"}, "minutes": {"type": "integer", "default": 5}},
                    "required": ["title"],
                },
            },
            "budget": {"type": "number"},
        },
        "required": ["to"],
    }


def test_a_bare_decorator_names_the_tool_after_the_function() -> None:
    @tool
    def say(words: str) -> str:
        """Say it."""
        return words

    assert (say.name, say.traits) == ("say", Traits.NONE)
    assert say.function("hi") == "hi"


def test_a_tool_can_have_another_name() -> None:
    @tool(name="list")
    def list_all() -> str:
        """List."""
        return ""

    assert list_all.schema.name == "list"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"to": "Ulm"}, "call-1: 2 train to Ulm by [] for None"),
        ({"to": 7, "people": "3", "budget": "1.5"}, "call-1: 3 train to 7 by [] for 1.5"),
        ({"to": "Ulm", "people": 4.0, "budget": 2}, "call-1: 4 train to Ulm by [] for 2.0"),
        ({"to": "Ulm", "stops": '[{"title": "Aalen"}]'}, "call-1: 2 train to Ulm by ['Aalen'] for None"),
        ({"to": "Ulm", "people": None, "by": None, "budget": None}, "call-1: 2 train to Ulm by [] for None"),
        ({"to": '["Ulm"]'}, 'call-1: 2 train to ["Ulm"] by [] for None'),
    ],
    ids=["defaults", "numbers as text", "whole numbers", "JSON as text", "null for a default", "text stays text"],
)
async def test_what_loses_nothing_is_converted(args: dict[str, Any], said: str, call: Call) -> None:
    assert (await call(plan_trip, **args)).text == said


async def test_every_wrong_argument_is_named_with_what_is_expected(call: Call) -> None:
    wrong = {"too": "Ulm", "people": 0, "by": "plane", "stops": [{"title": "A", "minutes": "x"}], "budget": "much"}
    with pytest.raises(ToolRefused) as refused:
        await call(plan_trip, **wrong)
    message = str(refused.value)
    assert message.startswith("plan_trip: wrong arguments: ")
    assert "`too` is unknown (did you mean `to`?)" in message
    assert "`to` is missing: string (The town, by its name)" in message
    assert "`people` must be integer (How many go), not 0" in message
    assert """`by` must be 'bus' or 'train', not "plane\"""" in message
    assert "`stops` must be array" in message
    assert "$[0].minutes" in message
    assert '`budget` must be number, not "much"' in message
    assert message.endswith("It takes (to, people?, by?, stops?, budget?).")


@pytest.mark.parametrize("people", [2.5, "two", "2.75", [2], {"n": 2}, True])
async def test_what_would_lose_something_is_refused(people: Any, call: Call) -> None:
    with pytest.raises(ToolRefused, match="`people`"):
        await call(plan_trip, to="Ulm", people=people)


async def test_a_long_wrong_value_is_cut_in_the_message(call: Call) -> None:
    with pytest.raises(ToolRefused) as refused:
        await call(plan_trip, to="Ulm", people="9" * 5000 + "x")
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        ("words", [Text("words")]),
        ({"n": [1, None]}, [Text('{"n":[1,null]}')]),
        (Stop("Aalen"), [Text('{"title":"Aalen","minutes":5}')]),
        (None, [Text("null")]),
        ([], [Text("[]")]),
        ([Text("see"), Image("image/png", b"\x89")], [Text("see"), Image("image/png", b"\x89")]),
        (("see", Image("image/png", b"\x89")), [Text("see"), Image("image/png", b"\x89")]),
        (Image("image/png", b"\x89"), [Image("image/png", b"\x89")]),
        (Text("see"), [Text("see")]),
        ({"at": Path("a/b")}, [Text('{"at":"a/b"}')]),
        ([Guest(name="Ann")], [Text('[{"name":"Ann","age":18}]')]),
        (ToolResult("other", "other", [Text("own")]), [Text("own")]),
    ],
)
async def test_an_answer_becomes_a_result(answer: Any, content: list[Any], call: Call) -> None:
    @tool
    async def answers() -> Any:
        """Answer."""
        return answer

    result = await call(answers)
    assert result.content == content
    assert (result.call_id, result.name) == ("call-1", "answers")


async def test_plain_function_runs_in_a_thread(call: Call) -> None:
    @tool
    def where() -> bool:
        """Say whether this is the main thread."""
        return threading.current_thread() is threading.main_thread()

    assert (await call(where)).text == "false"


async def test_plain_function_does_not_block_others(call: Call) -> None:
    barrier = threading.Barrier(2)

    @tool
    def meet() -> str:
        """Wait for the other."""
        barrier.wait(timeout=30)
        return "met"

    results = await asyncio.gather(call(meet), call(meet))
    assert [result.text for result in results] == ["met", "met"]


async def test_what_cannot_be_done_reaches_the_caller_as_it_is(call: Call) -> None:
    @tool
    async def refuse() -> str:
        """Refuse."""
        raise ToolRefused("not today")

    with pytest.raises(ToolRefused, match=r"^not today$"):
        await call(refuse)


def test_a_function_that_a_model_could_not_use_is_refused_at_once() -> None:
    def undocumented(path: str) -> str:
        return path

    def untyped(path) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001
        """Do it."""
        return path

    def many(*paths: str) -> str:
        """Do it."""
        return paths[0]

    def mistaken(path: str) -> str:
        """Do it.

        Args:
            paht: The path
        """
        return path

    for function, reason in ((undocumented, "docstring"), (untyped, "path"), (many, "paths"), (mistaken, "paht")):
        with pytest.raises(TypeError, match=reason):
            tool(function)
    with pytest.raises(TypeError, match="can't name a tool"):
        tool(name="Not a name")(plan_trip.function)


async def test_a_parameter_may_be_a_model_of_pydantic(call: Call) -> None:
    @tool
    async def invite(guest: Guest, others: list[Guest] = []) -> str:  # noqa: B006
        """Invite them."""
        return f"{guest!r} and {len(others)}"

    schema = invite.schema.parameters["properties"]["guest"]
    assert schema["properties"]["age"] == {"type": "integer", "minimum": 0, "default": 18, "description": "In years"}
    assert schema["required"] == ["name"]
    assert (await call(invite, guest={"name": "Ann"})).text == "Guest(name='Ann', age=18) and 0"
    assert (await call(invite, guest='{"name": "Ann"}', others=[{"name": "Bo"}])).text.endswith("and 1")
    with pytest.raises(ToolRefused, match=r"`guest` must be object, .*greater than or equal to 0 - at `\$\.age`"):
        await call(invite, guest={"name": "Ann", "age": -1})


async def test_what_pydantic_says_of_a_parameter_holds(call: Call) -> None:
    @tool
    async def wait(minutes: Annotated[int, pydantic.Field(ge=1, description="How long")]) -> str:
        """Wait."""
        return f"{minutes}"

    assert wait.schema.parameters["properties"]["minutes"] == {
        "type": "integer",
        "minimum": 1,
        "description": "How long",
    }
    with pytest.raises(ToolRefused, match="`minutes`"):
        await call(wait, minutes=0)


async def test_parameter_may_be_a_path_described_in_its_annotation(call: Call) -> None:
    @tool
    async def show(file: Annotated[Path, "Where it is"]) -> str:
        """Show it."""
        return file.name

    assert show.schema.parameters["properties"]["file"] == {"type": "string", "description": "Where it is"}
    assert (await call(show, file="a/b.txt")).text == "b.txt"


async def test_a_bound_method_is_a_function_as_well(call: Call) -> None:
    class Shop:
        stock = 7

        def left(self) -> int:
            """How many are left."""
            return self.stock

    assert (await call(tool(Shop().left))).text == "7"
    with pytest.raises(TypeError, match=r"left\(\): self .*tool\(object\.method\)"):
        tool(Shop.left)
    with pytest.raises(TypeError, match="neither a function nor a method"):
        tool(functools.partial(Shop.left, Shop()))


async def test_plain_function_may_wrap_an_async_one(call: Call) -> None:
    async def left() -> int:
        """How many are left."""
        return 7

    @functools.wraps(left)
    def counted(*args: Any) -> Any:
        return left(*args)

    assert (await call(tool(counted))).text == "7"


@pytest.mark.parametrize(("left", "told"), [(StopIteration(), "StopIteration"), (SystemExit(3), "SystemExit 3")])
async def test_a_plain_function_that_ends_strangely_only_fails(left: BaseException, told: str, call: Call) -> None:
    @tool
    def strange() -> str:
        """End strangely, as next() does on nothing and a program's main()."""
        raise left

    with pytest.raises(RuntimeError, match=f"^{told}$"):
        await asyncio.wait_for(call(strange), 30)


async def test_answer_without_a_json_form_is_reported_by_type(call: Call) -> None:
    @tool
    def numbers() -> Any:
        """Count."""
        return (number for number in range(3))

    with pytest.raises(TypeError, match="the type generator has no JSON form"):
        await call(numbers)


def test_a_parameter_of_a_type_that_json_cannot_say_is_named() -> None:
    def meet(other: threading.Thread) -> str:
        """Meet it."""
        return other.name

    with pytest.raises(TypeError, match=r"meet\(\): other: Thread can't be asked for"):
        tool(meet)
