"""`denizen moo check`: what is wrong in an agent's directory."""

from pathlib import Path

import click

from denizen.cli.moo.run import OFFLINE
from denizen.cli.output import write
from denizen.cli.text import one_line, printable
from denizen.errors import ConfigError
from denizen.worlds.assemble import Agent
from denizen.worlds.moo.character import Character
from denizen.worlds.moo.folder import SETTINGS, open_folder
from denizen.worlds.moo.plans import load_plan, plan_problems
from denizen.worlds.moo.token_pages import avatar


@click.command(short_help="Check an agent's directory.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
def check(folder: Path) -> None:
    """Read an agent's directory as `run` would, and show its settings, or what is wrong.

    The server isn't contacted. The exit status is 2 if something is wrong.
    """
    opened = open_folder(folder)
    settings, loaded = opened.settings, opened.loaded
    agent = Agent(loaded.config, environ=loaded.environ, profile="denizen")
    character = Character(opened.path, settings)
    found = {
        "agent": opened.name,
        "plays": f"{settings.user} at {settings.host}:{settings.port} ({settings.transport})",
        "model": agent.model.name,
        "wakes": f"after {settings.idle_wakeup_seconds:g} s" if settings.idle_wakeup_seconds else "when it is paged",
        "acts": settings.acting or "awaited",
        "chain": ", ".join(settings.token_chain) or "none",
        "tools": ", ".join(character.tools) or "all",
        "rules": str(len(character.soul.rules)),
        "plan": ", ".join(load_plan(opened.path, visits=settings.idle_wakeup_seconds > 0)) or "none",
        "session": opened.session_key,
    }
    write("".join(f"{name:9}{printable(text)}\n" for name, text in found.items()))
    notices = [*opened.notices]
    if agent.model.name == "offline" and avatar(settings.user) != avatar(settings.foreman):  # who needs no model
        notices.append(OFFLINE.format(opened.path / SETTINGS))
    for notice in notices:
        click.secho(one_line(notice), fg="yellow", err=True)
    wrong = [*character.problems, *plan_problems(opened.path)]
    if opened.missing_password:
        wrong.append(opened.missing_password)
    if wrong:
        raise ConfigError("\n".join(f"{opened.path}: {each}" for each in wrong))
