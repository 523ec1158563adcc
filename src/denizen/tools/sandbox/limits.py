"""What a command may take of the machine."""

import os
from collections.abc import Sequence

from denizen.config.settings import SandboxSettings

_SET = 'ulimit -d "$1"; [ "$2" = 0 ] || ulimit -u "$2" 2>/dev/null || ulimit -p "$2"; shift 2; exec "$@"'
"""For any POSIX shell: dash calls the number of processes `-p`."""


def limited(argv: Sequence[str], settings: SandboxSettings, *, count: bool = True) -> list[str]:
    """The command, with a limit on the memory of each process and, with `count`, on the number of processes.

    Processes are counted by user namespace, and root's aren't limited: that is how the kernel does it.
    """
    memory = settings.memory_mb * 1024 or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1024
    return ["/bin/sh", "-c", _SET, "sh", str(memory), str(settings.processes if count else 0), *argv]
