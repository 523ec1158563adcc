"""A program that opens the session `work` in a store, appends messages for ever, and prints each when it is kept.

    holder.py ROOT|URL [PAUSE]

With PAUSE it only opens the session, prints `open`, and waits until its standard input ends.
"""

import asyncio
import itertools
import sys
from pathlib import Path

from denizen.entries import NoteEntry, UserEntry
from denizen.messages import Text, UserMessage
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore
from denizen.sessions.postgres import PostgresStore
from denizen.sessions.tables import SharedTables


async def main() -> None:
    place, clock = sys.argv[1], SystemClock()
    in_database = place.startswith("postgresql:")
    store = PostgresStore(SharedTables(place), clock=clock) if in_database else JsonlStore(Path(place), clock=clock)
    session = await store.open("work")
    print("open", flush=True)
    if len(sys.argv) > 2:
        sys.stdin.read()
        return
    for number in itertools.count():
        text = f"{number} " + "x" * (number % 3000)
        await session.append(UserEntry(message=UserMessage([Text(text)])) if number % 5 else NoteEntry(text=text))
        print(number, flush=True)


asyncio.run(main())
