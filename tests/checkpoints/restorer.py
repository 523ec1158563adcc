"""A program that restores a snapshot.

restorer.py HOME WORKSPACE SNAPSHOT EXPECT
"""

import asyncio
import os
import sys
from pathlib import Path

from denizen.checkpoints import shadow_of
from denizen.runtime.clock import SystemClock


async def main() -> None:
    home, workspace, snapshot, expect = sys.argv[1:]
    shadow = shadow_of(Path(workspace), Path(home), clock=SystemClock(), environ=os.environ)
    await shadow.restore(snapshot, expect=expect)


asyncio.run(main())
