"""`denizen import`: another assistant's memory, persona and skills, and the commands that set up the rest."""

import re
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from denizen.cli.imports.assistants import ASSISTANTS, ForeignSettings, items, table
from denizen.cli.imports.plan import plan_import
from denizen.cli.output import accept_change, print_table, say, write
from denizen.cli.text import printable
from denizen.config.files import write_private
from denizen.config.home import places, private_folder
from denizen.config.load import load
from denizen.config.plugins import channel_entries
from denizen.errors import ConfigError
from denizen.prompt import SkillPins
from denizen.prompt.skills import read_skill
from denizen.text.plural import counted
from denizen.trusted.session_files import SessionFiles

_SECRET = re.compile("token|secret|password|key", re.IGNORECASE)


@click.command("import", short_help="Import memory, persona and skills of another assistant.")
@click.argument("assistant", type=click.Choice([*ASSISTANTS]))
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--yes", is_flag=True, help="Don't ask.")
def import_assistant(assistant: str, folder: Path, yes: bool) -> None:
    """Import memory, persona and skills of another assistant from its folder, such as ~/.openclaw or ~/.hermes.

    Shows what would happen to each file, and asks. None of your files is overwritten: if one exists with other content,
    the imported one is written next to it, as NAME.from-ASSISTANT.md. Channels, allow-lists and jobs are listed with
    the commands that set them up.
    """
    known, config = ASSISTANTS[assistant], load().config
    (home, _), workspace = places(config), config.agent.workspace_dir
    settings, pins = known.read_settings(folder), SkillPins(home)
    planned = plan_import(assistant, known, folder, workspace, pins)
    if not (settings.channels or settings.jobs or any(each.size for each in planned)):
        raise ConfigError(f"{folder} contains nothing to import. Name the assistant's folder, such as ~/.{assistant}.")
    rows = [(each.state, each.source, each.target, f"{each.size:,}" if each.size else "") for each in planned]
    print_table(("state", "from", "to, or why not", "bytes"), rows, elastic="to, or why not", right=("bytes",))
    if commands := [*_channels(settings), *_jobs(settings)]:
        write(printable("\nNot imported. These commands set it up:\n" + "\n".join(commands)) + "\n")
    new = [(workspace / each.target, each.data, each.mode) for each in planned if each.data is not None]
    if not new:
        say("Nothing new to import.")
        return
    accept_change(f"Import {counted(len(new), 'file')} into {workspace}?", yes=yes)
    with SessionFiles.of(config).writing() as carry:
        for path, data, mode in new:
            private_folder(path.parent)
            write_private(path, data)
            path.chmod(mode | 0o600)
            carry(path, "", data.decode(errors="replace"))
    for path, _, _ in new:
        if path.parent.parent == workspace / "skills" and path.name == "SKILL.md":
            pins.pin(read_skill(path))
    say(f"Imported {counted(len(new), 'file')} into {workspace}.")


def _channels(settings: ForeignSettings) -> Iterator[str]:
    """The command for each channel in use, and where its secrets are; never the secrets."""
    for kind, given in settings.channels.items():
        values = table(given)
        if not values or values.get("enabled") is False:
            continue
        if kind not in channel_entries():
            yield _comment(f"{kind}: Denizen has no such channel")
            continue
        names = (
            str(name).strip().removeprefix("tg:").removeprefix(f"{kind}:") for name in items(values.get("allowFrom"))
        )
        people = ",".join(name for name in names if name != "*")
        yield shlex.join(["denizen", "channels", "add", kind, *([f"allow={people}"] if people else [])])
        if secrets := [key for key in values if _SECRET.search(key)]:
            yield _comment(f"  its secrets are in {settings.file}: {', '.join(secrets)}")
    if settings.channels:
        yield "# people who were paired there get a new code here: denizen pair approve CODE"


def _jobs(settings: ForeignSettings) -> Iterator[str]:
    """The command for each job; a comment for one that Denizen can't schedule."""
    for job in map(table, settings.jobs):
        given, payload, name = table(job.get("schedule")), table(job.get("payload")), job.get("name")
        text = payload.get("message") or payload.get("text") or job.get("prompt")
        try:
            schedule = _schedule(given)
        except (ValueError, OverflowError, OSError):  # not a valid time
            schedule = None
        if schedule is None or not text:
            yield _comment(f"job {name}: it has no prompt, or a schedule that Denizen doesn't know")
            continue
        options = {"--name": name, "--to": _chat(job, payload), "--zone": given.get("tz")}
        words = [word for option, value in options.items() if value for word in (option, value)]
        command = shlex.join(["denizen", "cron", "add", *map(str, (*words, "--", *schedule, text))])
        yield _comment(f"(disabled there) {command}") if job.get("enabled") is False else command


def _comment(text: str) -> str:
    """Turn each line into a shell comment, so that pasting the output runs none of it."""
    return "\n".join(f"# {line}" for line in text.splitlines())


def _schedule(given: dict[str, Any]) -> tuple[str, str] | None:
    match given:
        case {"kind": "cron", "expr": str(expression)}:
            return "cron", expression
        case {"kind": "every", "everyMs": int(milliseconds)}:
            return "every", f"{milliseconds // 1000}s"
        case {"kind": "interval", "minutes": int(minutes)}:
            return "every", f"{minutes}m"
        case {"kind": "at", "at": str(at)} | {"kind": "once", "run_at": str(at)}:
            return "at", at
        case {"kind": "at", "atMs": int(milliseconds)}:
            return "at", datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
        case _:
            return None


def _chat(job: dict[str, Any], payload: dict[str, Any]) -> str:
    """Where the job's replies went, as `channel:chat`; empty if Denizen has no such channel."""
    origin, (sent_to, _, sent_chat) = table(job.get("origin")), str(job.get("deliver")).partition(":")
    chats = [(place.get("channel"), place.get("to")) for place in (table(job.get("delivery")), payload)]
    chats += [(sent_to, sent_chat), (origin.get("platform"), origin.get("chat_id"))]
    return next((f"{channel}:{chat}" for channel, chat in chats if chat and channel in channel_entries()), "")
