"""Types of arguments and answers: the JSON schema of one, and reading a value of it.

msgspec does both. Types with pydantic in them (models, `Field`) are left to pydantic, which a program that has such
types has loaded.
"""

import sys
import typing
from pathlib import Path
from typing import Any

import msgspec


class JsonType:
    """A type with a JSON schema. Raises TypeError for one that JSON can't hold."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._adapter = _pydantic_adapter(kind)
        self.schema: dict[str, Any] = self._adapter.json_schema() if self._adapter else _schema(kind)

    def read(self, value: Any, *, strict: bool = True) -> Any:
        """The value of this type for decoded JSON; unless `strict`, `"5"` is 5, too. Raises ValueError."""
        if self._adapter is None:
            return msgspec.convert(
                value, self._kind, strict=strict, str_keys=True, dec_hook=lambda kind, raw: kind(raw)
            )
        try:
            return self._adapter.validate_python(value)
        except ValueError as wrong:
            raise ValueError(_one_line(wrong)) from wrong

    def plain(self, value: Any) -> Any:
        """A value of this type as plain JSON data."""
        if self._adapter is None:
            return msgspec.to_builtins(value, enc_hook=plain)
        return self._adapter.dump_python(value, mode="json")


def plain(value: Any) -> Any:
    """JSON data for what msgspec doesn't know: a path, a pydantic model. Raises TypeError for anything else."""
    if isinstance(value, Path):
        return str(value)
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json")
    raise TypeError(f"the type {type(value).__name__} has no JSON form")


def _schema(kind: Any) -> dict[str, Any]:
    def hook(part: Any) -> dict[str, Any]:
        if part is Path:
            return {"type": "string"}
        raise NotImplementedError

    try:
        return msgspec.json.schema(kind, schema_hook=hook)
    except TypeError as wrong:
        name = kind.__name__ if isinstance(kind, type) else str(kind)
        raise TypeError(f"{name} can't be asked for: {str(wrong).splitlines()[-1]}") from wrong


def _pydantic_adapter(kind: Any) -> Any:
    """Pydantic's reader of a type that contains or needs pydantic; None: msgspec reads it."""
    fields = sys.modules.get("pydantic.fields")
    if fields is None:
        return None
    if not _mentions(kind, fields.FieldInfo):
        try:
            _schema(kind)
        except TypeError:
            pass
        else:
            return None
    from pydantic import PydanticUserError, TypeAdapter

    try:
        return TypeAdapter(kind)
    except PydanticUserError:
        return None


def _mentions(kind: Any, annotation: type) -> bool:
    return isinstance(kind, annotation) or any(_mentions(part, annotation) for part in typing.get_args(kind))


def _one_line(wrong: Any) -> str:
    """A ValidationError in one line, without its link."""
    errors = getattr(wrong, "errors", None)
    if not callable(errors):
        return str(wrong)
    found = [(".".join(map(str, error["loc"])), error["msg"]) for error in errors(include_url=False)]
    return "; ".join(f"{message} - at `$.{place}`" if place else message for place, message in found)
