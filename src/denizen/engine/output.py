"""Typed answers: asking for them, and checking them."""

import json
from contextlib import suppress
from typing import Any

import msgspec

from denizen.errors import ConfigError, OutputError
from denizen.ports.json_type import JsonType

MAX_TRIES = 3
"""Answers that the model may give before the turn fails."""


class OutputType:
    """What the final answer must be: a type that msgspec or pydantic knows, or a JSON schema.

    Raises TypeError for any other type, ConfigError for an invalid schema.
    """

    def __init__(self, kind: Any) -> None:
        self._kind = _Schema(kind) if isinstance(kind, dict) else JsonType(kind)
        self.schema = _without_detour(self._kind.schema)

    @property
    def enforced(self) -> dict[str, Any] | None:
        """The schema that the provider enforces; providers accept only schemas of objects."""
        return self.schema if self.schema.get("type") == "object" else None

    def request(self) -> str:
        """The instruction for the model."""
        return (
            "Give your final answer as JSON alone, without a code fence or any other words. It must fulfil this JSON "
            f"schema:\n{json.dumps(self.schema, ensure_ascii=False)}"
        )

    def read(self, reply: str) -> Any:
        """The typed answer. Raises OutputError, in words for the model, if it isn't one."""
        text = _unfenced(reply)
        try:
            return self._valid(text)
        except (ValueError, RecursionError) as wrong:
            raise OutputError(f"the answer isn't what was asked for: {wrong}. It begins: {text[:80]!r}") from wrong

    def _valid(self, text: str) -> Any:
        try:
            return self._kind.read(msgspec.json.decode(text))
        except ValueError:
            if isinstance(self._kind, JsonType):
                with suppress(ValueError):  # words without quotes, where words are asked for
                    return self._kind.read(text)
            raise


class _Schema:
    """A JSON schema in place of a type."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self._check = _checker(schema)

    def read(self, value: Any) -> Any:
        self._check(value)
        return value


def _without_detour(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type with a name, without `$ref`: providers want an object there."""
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    if name not in schema.get("$defs", {}):
        return schema
    inner = schema["$defs"][name]
    others = schema["$defs"] if "#/$defs/" in json.dumps(schema["$defs"]) else {}
    return {**inner, "$defs": others} if others else inner


def _checker(schema: dict[str, Any]) -> Any:
    import fastjsonschema

    try:
        return fastjsonschema.compile(schema, handlers=dict.fromkeys(("http", "https", "ftp", "file"), _not_fetched))
    except Exception as wrong:  # the boundary to the library: what it raises for a bad schema is of many kinds
        raise ConfigError(f"The output schema isn't valid JSON Schema: {wrong}.") from wrong


def _not_fetched(address: str) -> Any:
    raise ValueError(f"it refers to {address}, and nothing is fetched; put the definition into the schema")


def _unfenced(reply: str) -> str:
    """The JSON of a reply, also if the model put it into a fence."""
    text = reply.strip()
    if text.startswith("```"):
        text = text.partition("\n")[2].rpartition("```")[0]
    return text
