"""`--jq FILTER`: what a tool found, put through a filter in jq's language (https://jqlang.org/manual)."""

from pathlib import Path
from typing import Any

import msgspec

from denizen.errors import ToolRefused
from denizen.messages import Text, ToolResult
from denizen.tools.programs.jq_filter import CUT, WRONG
from denizen.tools.programs.process import run_python

MAX_CHARS = 40_000  # what is shown of a filter's results at most
TIMEOUT_S = 10.0  # how long a filter may take
_PROGRAM = Path(__file__).with_name("jq_filter.py")


async def filtered(answer: ToolResult, jq: str, data: Any = None, *, seconds: float = TIMEOUT_S) -> ToolResult:
    """The answer with the filter's results as its text: one JSON value in each line, strings as they are.

    The filter gets `data`, else the answer's details; without a filter the answer stays as it is. It runs in a process
    that reads no files, has no environment, and is ended when it takes too much. Raises ToolRefused for a filter that
    isn't one, fails, or takes too much.
    """
    if not jq:
        return answer
    task = {"filter": jq, "data": answer.details if data is None else data, "most": MAX_CHARS}
    most = 4 * MAX_CHARS + 4096
    status, output = await run_python(_PROGRAM, msgspec.json.encode(task), seconds=seconds, most=most)
    text = output.rstrip("\n")
    if status == WRONG:
        raise ToolRefused(f"the jq filter {jq!r}: {text}")
    if status not in {0, CUT}:
        raise ToolRefused(f"the jq filter {jq!r} takes too much time or memory; make it simpler")
    if status == CUT:
        text += "\n[more is left out; narrow the filter]"
    return msgspec.structs.replace(answer, content=[Text(text or "[the filter gives nothing]")])
