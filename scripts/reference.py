"""Write the reference pages of the documentation from the code: commands, settings, events, errors.

docs/reference/api.md is made by mkdocstrings when the site is built.

scripts/reference.py          writes docs/reference/*.md
scripts/reference.py --check  exits with 1 when a page is out of date
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import click
import msgspec

from denizen import errors, events, messages
from denizen.cli.main import cli
from denizen.config.reference import all_settings, settings_of
from denizen.worlds.world import worlds

FOLDER = Path(__file__).parents[1] / "docs" / "reference"

SOURCES = re.compile(r" \((?:seed|design)\b[^)]*\)")

SETTINGS_HEAD = "| setting | takes | default | meaning |\n|---|---|---|---|"

LONG = 60
"""Characters of a default that doesn't stand in the table."""


def commands_page() -> Iterator[str]:
    """Every command, with its arguments and options."""
    yield "# Commands\n"
    yield _paragraphs(cli.help or "")
    yield from _commands(cli, click.Context(cli, info_name="denizen"))


def _commands(group: click.Group, here: click.Context) -> Iterator[str]:
    for name in group.list_commands(here):
        command = group.get_command(here, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=here)
        yield f"\n## `{' '.join([context.command_path, *command.collect_usage_pieces(context)[1:]])}`\n"
        yield _paragraphs(command.help or "")
        yield from _options(command, context)
        if isinstance(command, click.Group):
            yield from _commands(command, context)


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    records = [option.get_help_record(context) for option in command.params if isinstance(option, click.Option)]
    if shown := [record for record in records if record]:
        yield "\n| option | |\n|---|---|"
    for option, text in shown:
        meaning = re.sub(r"\]\s+\[", "; ", text)  # two pairs of brackets would be a link in Markdown
        yield f"| `{_cell(option)}` | {_cell(meaning)} |"


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def settings_page() -> Iterator[str]:
    """Every setting of `denizen.toml`."""
    yield "# Settings\n"
    yield "Everything that `denizen.toml` may hold, with its default. `denizen config init` writes a commented file.\n"
    yield SETTINGS_HEAD
    of_worlds = (settings_of(world.settings, world.name) for world in worlds() if world.settings)
    found = [*all_settings(), *chain.from_iterable(of_worlds)]
    for each in found:
        if each.type == "a table" and not each.default:
            yield f"\n## `[{each.name}]`\n\n{each.doc.partition(': `[')[0].rstrip('.')}.\n\n{SETTINGS_HEAD}"
        else:
            default = f"`{each.default}`" if 0 < len(each.default) < LONG else "see below" if each.default else ""
            yield f"| `{each.name}` | {_cell(each.type)} | {_cell(default)} | {_cell(each.doc)} |"
    for each in found:
        if len(each.default) >= LONG:
            table, _, key = each.name.rpartition(".")
            yield f"\n## The default of `{each.name}`\n\n```toml\n[{table}]\n{key} = {each.default}\n```"


def events_page() -> Iterator[str]:
    """Every event that `on_event` receives, what streams inside `llm_stream`, the result and its messages."""
    yield "# Events\n"
    yield "`on_event`, `stream_agent()` and `denizen ask --json` report these. Each is a struct of `denizen.events`."
    yield "As JSON it has its name in the field `type`."
    yield from _structs(get_args(events.RunEvent))
    yield "\n## Pieces of a stream\n\nThe field `event` of `llm_stream` is one of these."
    yield from _structs(get_args(events.Delta))
    yield "\n## The result\n"
    yield from _fields(events.RunResult)
    yield "\n## Messages and their parts\n\nThe structs of `denizen.messages`. As JSON, default values are left out."
    yield from _structs(
        (*get_args(messages.Message), *get_args(messages.AssistantPart), messages.Image),
    )
    yield "\n### Usage\n"
    yield from _fields(messages.Usage)


def errors_page() -> Iterator[str]:
    """Every error of ours."""
    yield "# Errors\n"
    yield "All are in `denizen.errors`; each message says what happened, to what, and what to do.\n"
    yield "| error | meaning |\n|---|---|"
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, errors.DenizenError):
            yield f"| `{name}` | {_cell(_doc(kind))} |"
    yield "\nThe kinds of a `ModelError` ([what happens then](../models.md#when-a-call-fails)):\n"
    yield "| kind | retried |\n|---|---|"
    for each in get_args(errors.ErrorKind):
        yield f"| `{each}` | {'yes' if each in errors.RETRIABLE else 'no'} |"


def _structs(kinds: tuple[type[Any], ...]) -> Iterator[str]:
    for kind in kinds:
        yield f"\n### `{kind.__struct_config__.tag}`\n"
        yield from _fields(kind)


def _fields(kind: type[Any]) -> Iterator[str]:
    yield f"{_doc(kind)}\n"
    fields = msgspec.structs.fields(kind)
    if fields:
        yield "| field | type | default |\n|---|---|---|"
    for field in fields:
        yield f"| `{field.name}` | {_cell(_type(field.type))} | {_cell(_default(field))} |"


def _doc(kind: type[Any]) -> str:
    """What its docstring says, without the documents that it goes back to."""
    return SOURCES.sub("", inspect.getdoc(kind) or "")


def _type(kind: Any) -> str:
    if isinstance(kind, TypeVar):
        return "the type asked for"
    if get_origin(kind) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(kind))
    name = kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)
    return f"`{re.sub(r'[a-z_]+[.]', '', name)}`"


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return f"`{field.default_factory()}`"
    if field.default is msgspec.NODEFAULT:
        return ""
    return (
        "all unknown"
        if isinstance(field.default, messages.Usage)
        else f"`{msgspec.json.encode(field.default).decode()}`"
    )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "commands.md": commands_page,
    "settings.md": settings_page,
    "events.md": events_page,
    "errors.md": errors_page,
}


def on_page_content(html: str, **_: Any) -> str:
    """What mkdocs puts on a page: docstrings without the documents that they go back to."""
    return SOURCES.sub("", html)


def main() -> int:
    """Write the pages, or say which are out of date."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    stale = []
    for name, page in PAGES.items():
        text = "\n".join(page()) + "\n"
        path = FOLDER / name
        if not path.exists() or path.read_text("utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(text, "utf-8")
    if stale and "--check" in sys.argv:
        print(f"out of date: {', '.join(stale)}; run scripts/reference.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
