"""Runs the Python blocks of a page from top to bottom, as a reader would, in one namespace; `await` may stand alone.

python -m tests.docs.play PAGE    exits with 1 when a block prints something else than the page shows after it
"""

import ast
import asyncio
import io
import sys
import types
from contextlib import redirect_stdout
from pathlib import Path

from tests.docs.pages import Block, blocks


def main(page: Path) -> int:
    """The exit status."""
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    with asyncio.Runner() as runner:
        return max([_play(block, module, runner) for block in blocks(page, "python")], default=0)


def _play(block: Block, module: types.ModuleType, runner: asyncio.Runner) -> int:
    code = compile("\n" * (block.line - 1) + block.text, str(block.page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with redirect_stdout(io.StringIO()) as printed:
        value = eval(code, vars(module))
        if asyncio.iscoroutine(value):
            runner.run(value)
    if printed.getvalue() == (block.output or ""):
        return 0
    print(f"{block.place} printed\n{printed.getvalue()}in place of\n{block.output}")
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
