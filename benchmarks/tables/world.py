"""A player's thousand commands on a real DjangoMOO server, while two others talk to it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from tests import postgres
from tests.worlds.moo import djangomoo
from tests.worlds.moo.chatter import work_while_others_talk

from benchmarks.contenders import Entry, scratch
from benchmarks.hall import Plan
from benchmarks.report import Goal, Table
from denizen.worlds.moo.attribution import OutputTiming

NOTE = """\
One player gives commands that print, tell, move nowhere and page, each awaited; with each, one of two others says,
emotes, whispers or pages something. *Wrong*: outputs, of all three, that lack a line or have one too many. *Lost*:
lines of the two others that didn't arrive word for word and with their talker. Seconds by the clock; the server runs on
the same machine."""
COLUMNS = ("commands", "wrong", "said by others", "lost", "median s", "slowest s")


def table(plan: Plan, peers: Sequence[Entry]) -> Table:
    result = Table("A text world", NOTE, COLUMNS)
    with scratch() as folder:
        try:
            _play(result, folder, plan)
        except (djangomoo.NotInstallable, FileNotFoundError) as error:
            result.add(f"absent: {error}")
        finally:
            djangomoo.remove_started(folder)
            postgres.remove_begun(folder)
    return result


def _play(result: Table, folder: Path, plan: Plan) -> None:
    with djangomoo.running_server(folder, postgres.running_server(folder)) as server:
        tally = asyncio.run(work_while_others_talk(server, folder, plan.commands, OutputTiming(timeout=120)))
    times = sorted(tally.seconds)
    middle, slowest = times[len(times) // 2], times[-1]
    result.add(len(times), len(tally.wrong), tally.said, len(tally.lost), f"{middle:.2f}", f"{slowest:.2f}")
    result.goals.append(Goal("commands and lines of a text world, lost or wrong", 0, len(tally.wrong + tally.lost), ""))
