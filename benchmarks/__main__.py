"""Runs the suite: python -m benchmarks [--quick] [--only TABLE]."""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from benchmarks.contenders import Entry
from benchmarks.environments import HERE, Absent, version_of
from benchmarks.hall import FULL, QUICK, Plan
from benchmarks.report import Table, goals_table, machine, placeless
from benchmarks.roster import DENIZEN, FLOOR, NANOBOT, PEERS
from benchmarks.tables import (
    agentdojo,
    channels,
    checkpoints,
    chunks,
    cleaning,
    crowd,
    gateway,
    history,
    investigation,
    ledger,
    listing,
    screen,
    searching,
    start,
    telnet,
    turn,
    world,
)

TABLES: Mapping[str, Callable[[Plan, Sequence[Entry]], Table]] = {
    "turn": turn.table,
    "history": history.table,
    "growth": history.growth,
    "chunks": chunks.table,
    "start": start.table,
    "crowd": crowd.table,
    "opening": crowd.opening,
    "gateway": gateway.table,
    "chats": gateway.many,
    "workers": gateway.workers,
    "channels": channels.table,
    "message": channels.message,
    "ledger": ledger.table,
    "cleaning": cleaning.table,
    "listing": listing.table,
    "searching": searching.table,
    "checkpoints": checkpoints.table,
    "investigation": investigation.table,
    "screen": screen.table,
    "telnet": telnet.table,
    "world": world.table,
    "agentdojo": agentdojo.table,
    "day": agentdojo.day,
}
FEW: Mapping[str, Sequence[Entry]] = {
    "gateway": (DENIZEN, NANOBOT),
    "chats": (DENIZEN, NANOBOT),
    "workers": (DENIZEN,),
    "channels": (DENIZEN,),
    "message": (DENIZEN,),
    "ledger": (DENIZEN,),
    "cleaning": (DENIZEN,),
    "listing": (DENIZEN,),
    "searching": (DENIZEN,),
    "checkpoints": (DENIZEN,),
    "investigation": (DENIZEN,),
    "screen": (DENIZEN,),
    "telnet": (DENIZEN,),
    "world": (DENIZEN,),
    "agentdojo": (DENIZEN,),
    "day": (DENIZEN,),
}
"""Who takes part where not all do."""


def main() -> None:
    """Measure, print, and keep a full run in `results/` under today's date."""
    options = _options()
    chosen = options.only or list(TABLES)
    everyone = (FLOOR, DENIZEN, *PEERS)
    wanted = {entry for name in chosen for entry in FEW.get(name, everyone)}
    engines, peers = _contenders([entry for entry in everyone if entry in wanted])
    tables = [_timed(name, QUICK if options.quick else FULL, peers) for name in chosen]
    today = datetime.now(UTC).date().isoformat()
    head = f"# Benchmarks of {today}\n\n{machine()}.\n"
    text = "\n".join([head, *(each.markdown() for each in (goals_table(tables), engines, *tables))])
    print(text)
    if not (options.quick or options.only):
        (HERE / "results" / f"{today}.md").write_text(text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/run", description="Compare Denizen with other agent engines.")
    parser.add_argument("--quick", action="store_true", help="few repeats and short sessions; nothing is kept")
    parser.add_argument("--only", action="append", choices=TABLES, metavar="TABLE", help=f"one of {', '.join(TABLES)}")
    return parser.parse_args()


def _contenders(entries: Sequence[Entry]) -> tuple[Table, list[Entry]]:
    """Who takes part, at which version, and the peers that could be installed."""
    table = Table("Engines", "Each peer in an environment of its own, from `peers/locks/`.", ("engine", "version"))
    present: list[Entry] = []
    for entry in entries:
        try:
            table.add(entry.name, f"{entry.package} {version_of(entry.python(), entry.package)}")
            present.append(entry)
        except Absent as error:
            table.add(entry.name, f"absent: {placeless(str(error))}")
    return table, [entry for entry in present if entry in PEERS]


def _timed(name: str, plan: Plan, peers: Sequence[Entry]) -> Table:
    print(f"measuring {name} …", file=sys.stderr, flush=True)
    begun = time.monotonic()
    table = TABLES[name](plan, peers)
    print(f"measured {name} in {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    return table


if __name__ == "__main__":
    main()
