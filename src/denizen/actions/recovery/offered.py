"""The tools that a text may call, by name."""

import html
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

PREFIXES: Final = ("functions.", "function.", "tools.", "default_api.")
"""Namespaces that models put before a tool's name."""


class _Schema(Protocol):
    @property
    def parameters(self) -> dict[str, Any]: ...


class Named(Protocol):
    """A tool, as far as a text needs it."""

    name: str

    @property
    def schema(self) -> _Schema: ...


Tools = Iterable[Named | Mapping[str, Any]]


class Offered:
    """Names and the JSON schemas of their arguments."""

    def __init__(self, tools: Tools) -> None:
        self._parameters: dict[str, dict[str, Any]] = {}
        for tool in tools:
            name, parameters = _described(tool) if isinstance(tool, Mapping) else (tool.name, tool.schema.parameters)
            if isinstance(name, str) and name:
                self._parameters[name] = parameters if isinstance(parameters, dict) else {}

    def __bool__(self) -> bool:
        return bool(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def parameters(self, name: str) -> dict[str, Any]:
        """The schema of a tool's arguments."""
        return self._parameters[name]

    def known(self, written: str) -> str:
        """The tool that is meant by `written`; empty where none is."""
        name = written.strip().partition("<|")[0]
        candidates = [name, html.unescape(name), name.removesuffix(".call")]
        candidates += [name.removeprefix(prefix) for prefix in PREFIXES]
        return next((candidate for candidate in candidates if candidate in self._parameters), "")


def _described(tool: Mapping[str, Any]) -> tuple[Any, Any]:
    inner = tool.get("function")
    tool = inner if isinstance(inner, Mapping) else tool
    return tool.get("name"), tool.get("parameters")
