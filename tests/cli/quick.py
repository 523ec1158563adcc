"""`denizen gateway` or `denizen worker`, with heartbeats so frequent that the dead are found within seconds.

quick.py gateway|worker [--port 0]
"""

import asyncio
import sys

from denizen.cli.gateway.gateway import serve
from denizen.cli.gateway.worker import work
from denizen.cli.options import CommandOptions
from denizen.worlds.chat.ledger.database import WorkerTiming

QUICK = WorkerTiming(heartbeat=0.5, stalled=2.0, poll=0.2)

options = CommandOptions(usual_profile="gateway")
asyncio.run(serve("", 0, options, timing=QUICK) if sys.argv[1] == "gateway" else work(options, QUICK))
