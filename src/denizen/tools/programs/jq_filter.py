"""Runs a jq filter: `python -I jq_filter.py FILE` of `{"filter": …, "data": …, "most": …}` prints its results.

Status 3: what is printed says what is wrong with the filter. Status 4: there is more than `most` characters.

A program of its own: a short filter may run for ever or fill the memory, and jq reads files and the environment.
"""

import importlib
import json
import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

MAX_MEMORY_BYTES = 1_000_000_000  # bytes
MAX_CPU_S = 5  # seconds of a processor
WRONG, CUT = 3, 4


def main(path: str) -> int:
    """Print the results, one in each line; the exit status."""
    jq: Any = importlib.import_module("jq")  # it has no types
    task = json.loads(Path(path).read_bytes())
    limits = {  # from here on it opens no file, and ends when it takes too much
        resource.RLIMIT_NOFILE: 0,  # jq's `import` would read any file
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: MAX_CPU_S,
        resource.RLIMIT_AS: MAX_MEMORY_BYTES,
    }
    for limit, most in limits.items():
        with suppress(ValueError, OSError):  # not every system has them all
            resource.setrlimit(limit, (most, most))
    left = task["most"]
    try:
        for found in jq.compile(task["filter"]).input_value(task["data"]):
            line = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, separators=(",", ":"))
            if len(line) > left:
                _print(line[:left])
                return CUT
            _print(line)
            left -= len(line) + 1
    except ValueError as error:
        _print(str(error))
        return WRONG
    return 0


def _print(line: str) -> None:
    sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
