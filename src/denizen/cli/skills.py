"""`denizen skills`: list and show skills, see what changed in them since they were first used, and trust that."""

import shlex
from pathlib import Path

import click

from denizen.cli.home import workspace_option
from denizen.cli.output import accept_change, print_table, write, write_json
from denizen.cli.text import printable
from denizen.config.home import places
from denizen.config.load import load
from denizen.config.trust import is_trusted
from denizen.errors import ConfigError
from denizen.prompt import Skill, SkillPins, find_skills
from denizen.trusted.session_files import SessionFiles

_STATES = {"new": "not used yet", "same": "as it was", "changed": "changed"}


@click.group()
def skills() -> None:
    """Skills: instructions for particular tasks, yours, this project's and those that come with Denizen.

    You trust a skill's folder as it was when the skill was first used. If it changes, the skill is left out until you
    trust it again.
    """


@skills.command("list")
@workspace_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with every detail.")
def list_skills(workspace: Path | None, as_json: bool) -> None:
    """List the skills, and whether they changed since they were first used."""
    found, pins = _found(workspace)
    rows = [(skill.name, skill.origin, _state(pins, skill), skill.description) for skill in found]
    if as_json:
        names = ("name", "origin", "state", "description", "path")
        write_json(
            *(dict(zip(names, (*row, str(skill.path)), strict=True)) for row, skill in zip(rows, found, strict=True))
        )
    elif rows:
        print_table(("name", "origin", "state", "what it is for"), rows, elastic="what it is for")
    else:
        click.echo("There are no skills yet. To add one, create skills/NAME/SKILL.md.", err=True)


@skills.command()
@click.argument("name")
@workspace_option
def show(name: str, workspace: Path | None) -> None:
    """Print a skill's instructions."""
    [skill], pins = _found(workspace, name)
    click.echo(f"{printable(str(skill.path))}: {_state(pins, skill)}", err=True)
    write(printable(skill.path.read_text("utf-8", "replace")))


@skills.command()
@click.argument("names", nargs=-1, metavar="[NAME]…")
@workspace_option
def check(names: tuple[str, ...], workspace: Path | None) -> int:
    """Show what changed in skills since they were first used; exit with 1 when anything did.

    Without names, show what commands changed in other files that sessions begin with, too.
    """
    found, pins = _found(workspace, *names)
    changed = [skill for skill in found if _state(pins, skill) == _STATES["changed"]]
    for skill in changed:
        write(f"{printable(str(skill.path.parent))}\n{printable(pins.difference(skill))}\n")
    files = SessionFiles.of(load(workspace=workspace).config)
    set_aside = [] if names else files.set_aside()
    for path in set_aside:
        write(printable(files.difference(path)))
    advice = [f"To use it again: denizen skills trust {skill.name}" for skill in changed]
    advice += [f"To accept it: denizen trust {shlex.quote(str(path))}" for path in set_aside]
    click.echo(printable("\n".join(advice)) or "Nothing changed.", err=True)
    return 1 if advice else 0


@skills.command(short_help="Use skills as they are now.")
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@click.option("--yes", is_flag=True, help="Don't ask.")
@workspace_option
def trust(names: tuple[str, ...], yes: bool, workspace: Path | None) -> None:
    """Use skills as they are now, with all that changed in them; shows that first, and asks."""
    found, pins = _found(workspace, *names)
    for skill in found:
        if skill.origin == "built-in":
            raise click.UsageError(f"{skill.name} comes with Denizen: it changes with it, and is always trusted.")
        if _state(pins, skill) == _STATES["changed"]:
            accept_change(f"Trust {skill.name} as it is now?", pins.difference(skill), yes=yes)
        try:
            pins.pin(skill)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{skill.name} can't be trusted: {error}.") from error
        click.echo(f"{skill.name} is trusted as it is now.", err=True)


def _found(workspace: Path | None, *names: str) -> tuple[list[Skill], SkillPins]:
    """The skills of these names, by default all, and their pins; notices go to standard error. Raises ConfigError."""
    config = load(workspace=workspace).config
    home, folder = places(config)
    found, notices = find_skills(config.agent.workspace_dir, folder, trusted=is_trusted(home, folder), profile="*")
    for text in notices:
        click.secho(printable(text), fg="yellow", err=True)
    by_name = {skill.name: skill for skill in found}
    if unknown := [name for name in names if name not in by_name]:
        raise ConfigError(f"There is no skill {unknown[0]!r} here; available: {', '.join(by_name) or 'none'}.")
    return [by_name[name] for name in names] or found, SkillPins(home)


def _state(pins: SkillPins, skill: Skill) -> str:
    try:
        return _STATES[pins.state(skill)]
    except (OSError, ValueError) as error:
        return f"left out: {error}"
