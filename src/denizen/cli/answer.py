"""`denizen answer`: what a parked turn waits for."""

import asyncio
import dataclasses
import shlex
from collections.abc import Sequence
from typing import Literal

import click

from denizen.cli.home import store
from denizen.cli.host import JsonHost, describe, parse_answer
from denizen.cli.options import MODEL, TERMINAL, WORKPLACE, CommandOptions, command_options
from denizen.cli.output import write
from denizen.cli.terminal import Terminal
from denizen.cli.turns import STATUS, decide_folder, last_model, opened, options_as_begun, run, turn_of
from denizen.config.load import Loaded
from denizen.engine.resume import question_of, unfinished
from denizen.entries import AnswerEntry, AnyEntry
from denizen.errors import SessionError
from denizen.events import Notice, TurnParked
from denizen.ports import Ask
from denizen.sessions import session_key, short_name
from denizen.worlds.world import check_host

Scope = Literal["once", "session", "always"]


@click.command()
@click.argument("name", metavar="SESSION")
@click.argument("words", nargs=-1, metavar="[yes|no|TEXT…]")
@click.option("--for-session", "scope", flag_value="session", help="Approve this exact call for the whole session.")
@click.option(
    "--always", "scope", flag_value="always", help="Approve this call for good, by a rule in the configuration."
)
@command_options((MODEL, WORKPLACE, TERMINAL))
def answer(name: str, words: tuple[str, ...], scope: Scope | None, options: CommandOptions) -> int:
    """Answer the question of a parked turn, and continue the turn.

    Without an answer, the question is shown. Text other than yes or no goes to the agent, and the call isn't run. The
    turn keeps the folder, profile and model that it began with, unless an option names others.
    """
    with options.host() as host, asyncio.Runner() as runner:
        entries = runner.run(store().read(name))
        request = _question(name, entries)
        said = " ".join(words)
        if not said.strip():
            if isinstance(host, JsonHost):
                host.emit(TurnParked(session_key(name), request.call_id, request.question))
            else:
                how = (
                    f"Answer with: denizen answer {shlex.quote(short_name(name))} yes|no|TEXT [--for-session|--always]"
                )
                try:
                    check_host(entries)
                except SessionError as error:
                    how = str(error)
                write(f"{describe(request)}\n\n{how}\n")
            return STATUS["parked"]
        given = parse_answer(request, said)
        if scope and not given.allow:
            raise click.UsageError("--for-session and --always go with yes.")
        entry = AnswerEntry(call_id=given.call_id, allow=given.allow, text=given.text, scope=scope or given.scope)
        goes_on = options_as_begun(options, entries)
        goes_on = dataclasses.replace(goes_on, model=options.model or last_model(entries))
        return run(runner, _go_on(name, entry, goes_on, decide_folder(goes_on), host))


async def _go_on(
    name: str, given: AnswerEntry, options: CommandOptions, loaded: Loaded, host: Terminal | JsonHost
) -> int:
    for text in loaded.notices:
        host.emit(Notice(text, "warning"))
    async with options.agent(loaded) as agent, opened(agent, name, host) as session:
        if _question(name, session.entries).call_id != given.call_id:
            raise SessionError(
                f"Session {name} now waits for another answer. Look again: denizen answer {shlex.quote(name)}"
            )
        check_host(session.entries)
        await session.append(given)
        return STATUS[await turn_of(agent, session, None, host, options.turn(agent))]


def _question(name: str, entries: Sequence[AnyEntry]) -> Ask:
    """What the session waits for. Raises SessionError if that is nothing."""
    if parked := question_of(entries):
        return Ask(parked.call_id, parked.question, parked.name, parked.args)
    hint = f" Its turn is unfinished; continue it: denizen ask --session {shlex.quote(name)}"
    raise SessionError(f"Session {name} isn't waiting for an answer.{hint if unfinished(entries) else ''}")
