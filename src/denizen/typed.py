"""The types of arguments and answers: the JSON that fulfils one, and the value that it stands for.

msgspec reads them. What has pydantic in it (models, `Field`) is left to pydantic, which a program that has such types
has loaded.
"""

import sys
import typing
from pathlib import Path
from typing import Any

import msgspec


class Typed:
    """A type. Raises TypeError for one that JSON can't say."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._adapter = _pydantic(kind)
        self.schema: dict[str, Any] = self._adapter.json_schema() if self._adapter else _schema(kind)

    def read(self, value: Any, *, strict: bool = True) -> Any:
        """The value that decoded JSON stands for; unless `strict`, `"5"` stands for 5, too. Raises ValueError."""
        if self._adapter is None:
            return msgspec.convert(value, self._kind, strict=strict, str_keys=True, dec_hook=_made)
        try:
            return self._adapter.validate_python(value)
        except ValueError as wrong:
            raise ValueError(_told(wrong)) from wrong

    def plain(self, value: Any) -> Any:
        """A value of the type, as JSON says it."""
        if self._adapter is None:
            return msgspec.to_builtins(value, enc_hook=plain)
        return self._adapter.dump_python(value, mode="json")


def plain(value: Any) -> Any:
    """What msgspec doesn't know, as JSON says it: a path, a pydantic model. Raises TypeError for anything else."""
    if isinstance(value, Path):
        return str(value)
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json")
    raise TypeError(f"the type {type(value).__name__} has no JSON form")


def _schema(kind: Any) -> dict[str, Any]:
    try:
        return msgspec.json.schema(kind, schema_hook=_schema_of_path)
    except TypeError as wrong:
        raise TypeError(f"{_name(kind)} can't be asked for: {str(wrong).splitlines()[-1]}") from wrong


def _schema_of_path(kind: Any) -> dict[str, Any]:
    if kind is Path:
        return {"type": "string"}
    raise NotImplementedError


def _made(kind: Any, value: Any) -> Any:
    return kind(value)


def _name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _pydantic(kind: Any) -> Any:
    """A reader by pydantic, of a type that has pydantic in it or that only pydantic knows; None: msgspec reads it."""
    fields = sys.modules.get("pydantic.fields")
    if fields is None or not (_mentions(kind, fields.FieldInfo) or _unknown(kind)):
        return None
    from pydantic import PydanticUserError, TypeAdapter

    try:
        return TypeAdapter(kind)
    except PydanticUserError:
        return None


def _mentions(kind: Any, annotation: type) -> bool:
    return isinstance(kind, annotation) or any(_mentions(part, annotation) for part in typing.get_args(kind))


def _unknown(kind: Any) -> bool:
    try:
        _schema(kind)
    except TypeError:
        return True
    return False


def _told(wrong: Any) -> str:
    """A ValidationError in one line, without its link."""
    errors = getattr(wrong, "errors", None)
    if not callable(errors):
        return str(wrong)
    told = [(".".join(map(str, error["loc"])), error["msg"]) for error in errors(include_url=False)]
    return "; ".join(f"{message} - at `$.{place}`" if place else message for place, message in told)
