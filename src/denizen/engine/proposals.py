"""Defaults that would have saved calls, for the user to accept (seed 001, T2)."""

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from denizen.engine.friction import PLACES, Friction
from denizen.ports import Schema
from denizen.tools.defaults import may_default

LEAST_CORRECTED = 3
"""Corrections to an argument from which on a default is proposed, …"""
SHARE_CORRECTED = 0.2
"""… if they are this share of the tool's calls; and of the corrections a half agree."""
LEAST_GIVEN = 10
"""Calls that give an argument from which on its value is proposed as the default, …"""
SHARE_GIVEN = 0.8
"""… if this share of the tool's calls give that very value."""
_LONGEST = 100
"""Characters of a text that may be a default."""


class Proposal(msgspec.Struct, frozen=True):
    """Give `argument` of `tool` the default `value`, in place of `now` (None: none), for the reason `why`."""

    tool: str
    argument: str
    value: Any
    now: Any
    why: str

    @property
    def name(self) -> str:
        """`grep.context`."""
        return f"{self.tool}.{self.argument}"


def proposals(tools: Iterable[Friction], schemas: Mapping[str, Schema]) -> list[Proposal]:
    """The defaults that fit how the tools are called better than those they have."""
    return [proposal for tool in tools if tool.tool in schemas for proposal in _proposed(tool, schemas[tool.tool])]


def _proposed(tool: Friction, schema: Schema) -> Iterator[Proposal]:
    for argument, kind in may_default(schema).items():
        if argument in PLACES:
            continue
        value, why = _corrected(tool, argument)
        if value is None:
            value, why = _given(tool, argument)
        now = kind.get("default")
        if value is None or value == now or (now is None and not value) or not _fits(value, kind):
            continue  # a schema doesn't tell of a default that is false, nothing or empty
        yield Proposal(tool.tool, argument, value, now, why)


def _corrected(tool: Friction, argument: str) -> tuple[Any, str]:
    """What the argument was corrected to, where that happened often."""
    values = [each.after for each in tool.corrections if each.argument == argument and _is_plain(each.after)]
    if len(values) < LEAST_CORRECTED or len(values) < SHARE_CORRECTED * tool.calls:
        return None, ""
    why = f"{len(values)} of {tool.calls} calls were made again at once with another {argument}"
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return statistics.median_high(values), why
    value, count = _most_common(values)
    return (value, why) if 2 * count >= len(values) else (None, "")


def _given(tool: Friction, argument: str) -> tuple[Any, str]:
    """What nearly every call gives."""
    values = [args[argument] for args in tool.args if _is_plain(args.get(argument))]
    if len(values) < LEAST_GIVEN:
        return None, ""
    value, count = _most_common(values)
    if count < LEAST_GIVEN or count < SHARE_GIVEN * tool.calls:
        return None, ""
    return value, f"{count} of {tool.calls} calls give it"


def _most_common(values: Sequence[Any]) -> tuple[Any, int]:
    [(text, count)] = Counter(map(json.dumps, values)).most_common(1)
    return json.loads(text), count


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float)) or (isinstance(value, str) and 0 < len(value) <= _LONGEST)


def _fits(value: Any, schema: dict[str, Any]) -> bool:
    import fastjsonschema

    try:
        fastjsonschema.validate(schema, value)
    except fastjsonschema.JsonSchemaValueException:
        return False
    return True
