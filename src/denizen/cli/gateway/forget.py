"""`denizen pair forget`: delete a sender's data."""

import asyncio
from functools import partial
from pathlib import Path

import click

from denizen.cli.output import ask_to_delete, say, write
from denizen.cli.text import one_line
from denizen.config.home import places
from denizen.config.load import load
from denizen.config.people import Person
from denizen.config.redact import Redactor
from denizen.errors import DenizenError
from denizen.memory import open_memory
from denizen.runtime.clock import SystemClock
from denizen.sessions.search_file import SearchFile
from denizen.text.plural import counted
from denizen.worlds.chat.backends import open_backends
from denizen.worlds.chat.http.server import find_running
from denizen.worlds.chat.ledger.database import DEFAULT_TIMING
from denizen.worlds.chat.ledger.personal_data import delete_personal_data, personal_data


@click.command()
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.argument("who")
def forget(who: str, *, yes: bool) -> None:
    """List a sender's data (CHANNEL:SENDER, or a name in [people]), ask, and delete it.

    That is: messages, direct chats with their sessions, replies, received files and jobs, pairings, and the facts
    remembered in those sessions. The gateway and its workers must be stopped.
    """
    asyncio.run(_forget(who, yes=yes))


async def _forget(who: str, *, yes: bool) -> None:
    loaded = load()
    folder, _ = places(loaded.config)
    if find_running(folder):
        raise DenizenError("The gateway is running. Stop it and its workers first.")
    channel, colon, sender = who.partition(":")
    if who in loaded.config.people:
        senders = [*Person.of(who, loaded.config.people[who]).ids.items()]
    elif colon:
        senders = [(channel, sender)]
    else:
        raise DenizenError(f"{who!r} is neither CHANNEL:SENDER nor a name in [people].")
    clock, redactor = SystemClock(), Redactor.from_environ(loaded.environ, loaded.secrets)
    async with open_backends(loaded.config, clock, redactor, is_gateway=True, timing=DEFAULT_TIMING) as shared:
        found = await shared.ledger.run(partial(personal_data, senders=senders))
        if found.is_open:
            raise DenizenError(
                f"The gateway hasn't finished a message from {who}. Start it and let it finish, or /stop the turn."
            )
        memory = shared.memory or open_memory(loaded.config, clock=clock, redact=redactor.text, with_notes=True)
        click.get_current_context().call_on_close(memory.close)
        keys = [each.key for each in await shared.sessions.list()]
        sessions = [key for key in keys if key.partition("~")[0] in found.sessions]
        facts = [fact for fact in memory.facts() if fact.source in sessions]
        files = [path for path in map(Path, found.media) if folder / "channels" in path.parents]
        say(f"{counted(len(found.rows), 'message')} from {who}, with their replies and pairings")
        for kind, names in (
            ("session", sessions),
            ("file", map(str, files)),
            ("job", found.jobs),
            ("fact", [fact.text for fact in facts]),
            ("kept, because others write there too:", found.groups),
        ):
            for name in sorted(names):
                say(f"{kind} {one_line(name)}")
        ask_to_delete(yes=yes)
        for fact in facts:
            await memory.forget(fact.id)
        for key in sessions:
            await shared.sessions.remove(key)
        for path in files:
            path.unlink(missing_ok=True)
        await shared.ledger.run(partial(delete_personal_data, found=found, senders=senders))
    SearchFile(folder / "sessions", folder / "search.db").purge_removed()
    write("Deleted.\n")
