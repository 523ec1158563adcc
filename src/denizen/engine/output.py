"""Typed answers: asking for them, and checking what came."""

import json
from typing import Any

import msgspec

from denizen.errors import ConfigError, OutputError

TRIES = 3
"""How often the model may answer before the turn fails."""


class Output:
    """What the final answer must be: a type that msgspec knows, or a JSON schema."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self.schema = kind if isinstance(kind, dict) else _schema_of(kind)
        self._check = _checker(kind) if isinstance(kind, dict) else None

    def request(self) -> str:
        """The words that ask the model for it."""
        return (
            "Give your final answer as JSON alone, without a code fence or any other words. It must fulfil this JSON "
            f"schema:\n{json.dumps(self.schema, ensure_ascii=False)}"
        )

    def read(self, reply: str) -> Any:
        """The typed answer. Raises OutputError with words for the model where it isn't one."""
        text = _unfenced(reply)
        try:
            if self._check is None:
                return msgspec.json.decode(text, type=self._kind)
            value = msgspec.json.decode(text)
            self._check(value)
        except (msgspec.DecodeError, ValueError, RecursionError) as wrong:
            raise OutputError(f"the answer isn't what was asked for: {wrong}. It begins: {text[:80]!r}") from wrong
        return value


def _schema_of(kind: Any) -> dict[str, Any]:
    schema = msgspec.json.schema(kind)
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    if not name:
        return schema
    inner = schema["$defs"][name]
    others = schema["$defs"] if "#/$defs/" in json.dumps(schema["$defs"]) else {}
    return {**inner, "$defs": others} if others else inner


def _checker(schema: dict[str, Any]) -> Any:
    import fastjsonschema

    try:
        return fastjsonschema.compile(schema, handlers=dict.fromkeys(("http", "https", "ftp", "file"), _not_fetched))
    except Exception as wrong:  # the boundary to the library: what it raises for a bad schema is of many kinds
        raise ConfigError(f"The output schema is no JSON schema: {wrong}.") from wrong


def _not_fetched(address: str) -> Any:
    raise ValueError(f"it refers to {address}, and nothing is fetched; put the definition into the schema")


def _unfenced(reply: str) -> str:
    """The JSON of a reply, where a model put it into a fence all the same."""
    text = reply.strip()
    if text.startswith("```"):
        text = text.partition("\n")[2].rpartition("```")[0]
    return text
