"""`denizen channels`: list the gateway's channels and their states, and add channels."""

import asyncio
import logging
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec

from denizen.cli.home import home
from denizen.cli.output import is_interactive, print_table, say, write
from denizen.cli.text import printable
from denizen.config.check import check, convert, describe, fields
from denizen.config.env import fill_in, references
from denizen.config.load import load
from denizen.config.plugins import channel_entries
from denizen.config.redact import Redactor, is_secret
from denizen.config.reference import settings_of
from denizen.config.settings import Config
from denizen.config.toml import SettingsFile
from denizen.config.write import add_table, add_variable
from denizen.worlds.chat.delivery.channel_kinds import kind_of, load_kind, reporting_missing_packages
from denizen.worlds.chat.delivery.channel_states import ChannelState
from denizen.worlds.chat.delivery.state_files import read_state
from denizen.worlds.chat.http.server import find_running


@click.group(invoke_without_command=True)
@click.pass_context
def channels(context: click.Context) -> None:
    """List the gateway's channels with their kind, state, last message and last error."""
    if context.invoked_subcommand:
        return
    loaded, is_running = load(), find_running(home()) is not None
    for text in loaded.notices:
        click.secho(printable(text), fg="yellow", err=True)
    states = read_state(home() / "channels.json", dict[str, ChannelState]) or {}
    redactor = Redactor.from_environ(loaded.environ, loaded.secrets)
    rows = [
        (name, kind_of(name, settings), redactor.text(states.get(name, ChannelState()).line(is_running=is_running)))
        for name, settings in loaded.config.channels.items()
    ]
    if rows:
        print_table(("name", "kind", "state"), rows, elastic="state")
    else:
        say("No channels are configured.")
    say(f"Kinds: {', '.join(channel_entries())}. Add a channel: denizen channels add KIND")


@channels.command(short_help="Add a channel to your denizen.toml.")
@click.option("--name", default="", metavar="NAME", help="The channel's name (default: the kind's).")
@click.argument("kind", metavar="KIND")
@click.argument("given", nargs=-1, metavar="[SETTING[=VALUE]]…")
def add(kind: str, given: Sequence[str], name: str) -> None:
    """Add a channel to your denizen.toml: explain the setup, ask for the settings, and check them with the service.

    It asks for the settings that the channel needs, and for those given without a value. Lists have commas
    (allow=ann,ben), and so have tables (targets=phone=URL,desk=URL). Secrets are stored in .env in the home, unless
    they are references: 'token=${BOT_TOKEN}'.
    """
    found, name = load_kind(kind), name or kind
    say(found.steps)
    values = _prompt_for_missing(found.settings, {each.partition("=")[0]: each.partition("=")[2] for each in given})
    if name != kind:
        values = {"type": kind, **values}
    loaded, secrets = load(), dict[str, str]()

    def refer_to_secret(table: dict[str, Any], key: str, place: str) -> None:
        if not any(references(table[key])):
            variable = re.sub(r"\W", "_", place, flags=re.ASCII).upper()
            secrets[variable], table[key] = table[key], f"${{{variable}}}"

    for key, value in values.items():
        if isinstance(value, dict):
            for item in value:  # URLs, which may contain tokens
                refer_to_secret(value, item, f"{name}_{item}")
        elif isinstance(value, str) and is_secret(key, value, even_words=True):
            refer_to_secret(values, key, f"{name}_{key}")
    environ = {**loaded.environ, **secrets}
    data = {"channels": {name: values}}
    check(SettingsFile("The options", "", data), Config, environ, {name: found.settings})
    logging.getLogger().addHandler(logging.NullHandler())  # libraries log failures that the error describes
    with reporting_missing_packages(kind):
        account = asyncio.run(_run_check(found.check, convert(fill_in(values, environ), found.settings)))
    for variable, value in secrets.items():
        add_variable(home(), variable, value)
    add_table(home(), "channels", name, values)
    write(f"{home() / 'denizen.toml'}\n")
    say(
        f"Added {name}: {account}. The gateway reads it at its start, or on SIGHUP. `denizen channels` shows its state."
    )


async def _run_check(check_account: Any, settings: msgspec.Struct) -> str:
    return await check_account(settings)


def _prompt_for_missing(table: type[msgspec.Struct], given: Mapping[str, str]) -> dict[str, Any]:
    """The given settings. The person is asked for those that are empty, and for the other required ones."""
    docs = {each.name.rpartition(".")[2]: each.doc for each in settings_of(table, "channel")}
    values, known = dict(given), fields(table)
    for key, field in known.items():
        if not values.get(key, "" if field.required else "unset"):
            if not is_interactive():
                raise click.UsageError(
                    f"Give {key}={describe(field.type)}: this isn't a terminal, so nobody can be asked."
                )
            hides = is_secret(key, "x" * 20, even_words=True)
            values[key] = click.prompt(f"{docs[key]}\n{key}", hide_input=hides, err=True)
    return {key: _parse_value(value, known[key].type) if key in known else value for key, value in values.items()}


def _parse_value(text: str, kind: Any) -> Any:
    """Parse a setting as in TOML, but with unquoted strings, and lists and tables separated by commas."""
    if describe(kind).startswith("a list"):
        return [each.strip() for each in text.split(",") if each.strip()]
    if describe(kind) == "a table of strings":
        items = (each.partition("=") for each in re.split(r",(?=\s*\w+=)", text))
        return {key.strip(): value.strip() for key, _, value in items}
    if describe(kind) in {"true or false", "a number"} or describe(kind).startswith("an integer"):
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            return text
    return text
