"""`@tool`: a typed, documented function becomes something that the model can do."""

import asyncio
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import msgspec

from denizen.json_type import plain
from denizen.messages import Text, ToolResult, UserPart
from denizen.ports import Schema, ToolContext, Traits
from denizen.tools.schema import Signature, read_signature

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(slots=True)
class FunctionTool:
    """A tool made of `function`, which can still be called by itself; `awaited`: it is a coroutine function."""

    function: Callable[..., Any]
    awaited: bool
    signature: Signature
    name: str
    shell_names: Sequence[str]
    traits: Traits
    schema: Schema
    refuse: Callable[..., object] | None = None
    plans: bool = False

    def check(self, args: dict[str, Any]) -> None:
        """Raises ToolRefused for arguments that don't fit the function, or that `refuse` refuses."""
        checked = self.signature.check(self.name, args)
        if self.refuse:
            self.refuse(**checked)

    async def run(self, args: dict[str, Any], turn: ToolContext) -> ToolResult:
        """Call the function with the checked arguments; a plain one runs in a thread. Raises ToolRefused."""
        checked = self.signature.check(self.name, args)
        if self.signature.context:
            checked[self.signature.context] = turn
        value = await (self.function(**checked) if self.awaited else self._in_thread(checked))
        if isinstance(value, ToolResult):
            return msgspec.structs.replace(value, call_id=turn.call_id, name=self.name)
        return ToolResult(turn.call_id, self.name, _content(value))

    async def _in_thread(self, args: dict[str, Any]) -> Any:
        value = await asyncio.to_thread(self._call, args)
        return await value if inspect.isawaitable(value) else value  # a plain function may stand around an async one

    def _call(self, args: dict[str, Any]) -> Any:
        try:
            return self.function(**args)
        except (StopIteration, SystemExit) as left:  # no future can carry the one; the other would end the program
            raise RuntimeError(f"{type(left).__name__} {left}".rstrip()) from left


def result(text: str, **details: Any) -> ToolResult:
    """What a tool function answers: words for the model, and details for the screen."""
    return ToolResult("", "", [Text(text)], details=details or None)


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(
    *,
    traits: Traits = Traits.NONE,
    name: str = "",
    shell_names: Sequence[str] = (),
    refuse: Callable[..., object] | None = None,
    plans: bool = False,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    traits: Traits = Traits.NONE,
    name: str = "",
    shell_names: Sequence[str] = (),
    refuse: Callable[..., object] | None = None,
    plans: bool = False,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Let the model call a function: `@tool`, or `@tool(traits=Traits.READS)`.

    The model is told the docstring's first paragraph and, of each parameter, its type and its line in the docstring's
    `Args:` section. A parameter annotated `ToolContext` is filled in and not told. The function may be async; a plain
    one runs in a thread, which a cancelled turn leaves behind. It returns a string, a part (Text, Image) or a list of
    them, a ToolResult, or anything that has a JSON form, and raises ToolRefused for what can't be done. Without
    `traits` its calls run one at a time, never again after a crash, and as the policy says. `refuse` is called with the
    arguments before a person is asked about a call: it raises ToolRefused for what the function would refuse anyway. A
    tool that `plans` obeys `ToolContext.planned`, so that a question about a call can show what it would change.

    Raises TypeError for a function without a docstring, or with a parameter that can't be given by name and type.
    """

    def made(function: Callable[..., Any]) -> FunctionTool:
        if not inspect.isroutine(function):
            raise TypeError(f"{function!r} can't be a tool: it is neither a function nor a method")
        signature = read_signature(function)
        called = name or function.__name__
        if not _NAME.fullmatch(called):
            raise TypeError(f"{called!r} can't name a tool: small letters, digits and _ (at most 64), a letter first")
        schema = Schema(called, signature.description, signature.schema())
        awaited = inspect.iscoroutinefunction(function)
        return FunctionTool(function, awaited, signature, called, shell_names, traits, schema, refuse, plans)

    return made(function) if function else made


def _content(value: Any) -> list[UserPart]:
    if isinstance(value, UserPart):
        return [value]
    items: Sequence[Any] = value if isinstance(value, (list, tuple)) else ()
    if any(isinstance(part, UserPart) for part in items):
        return [part if isinstance(part, UserPart) else Text(_said(part)) for part in items]
    return [Text(_said(value))]


def _said(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=plain).decode()
