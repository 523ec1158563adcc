"""Write the reference pages of the documentation from the code: settings, events, errors.

scripts/reference.py          writes docs/reference/*.md
scripts/reference.py --check  exits with 1 when a page is out of date
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec

from denizen import errors, events
from denizen.config.reference import all_settings

FOLDER = Path(__file__).parents[1] / "docs" / "reference"


def settings_page() -> Iterator[str]:
    """Every setting of `denizen.toml`."""
    yield "# Settings\n"
    yield "Everything that `denizen.toml` may hold, with its default. `denizen config init` writes a commented file.\n"
    yield "| setting | takes | default | meaning |\n|---|---|---|---|"
    for each in all_settings():
        default = (
            f"`{each.default}`" if each.default and len(each.default) < 60 else "see below" if each.default else ""
        )
        yield f"| `{each.name}` | {_cell(each.type)} | {_cell(default)} | {_cell(each.doc)} |"
    long = [each for each in all_settings() if len(each.default) >= 60]
    for each in long:
        yield f"\nDefault of `{each.name}`:\n\n```toml\n{each.default}\n```"


def events_page() -> Iterator[str]:
    """Every event that `on_event` receives, and what streams inside `llm_stream`."""
    yield "# Events\n"
    yield "What `on_event`, `stream_agent()` and `denizen ask --json` give. Each is a struct of `denizen.events`.\n"
    yield from _structs(get_args(events.RunEvent))
    yield "\n## Pieces of a stream\n\nWhat `llm_stream` carries in `event`.\n"
    yield from _structs(get_args(events.Delta))
    yield "\n## The result\n"
    yield from _fields(events.RunResult)
    stops = ", ".join(f"`{stop}`" for stop in get_args(events.TurnStop))
    yield f"\n`stop_reason` is one of {stops}."


def errors_page() -> Iterator[str]:
    """Every error of ours."""
    yield "# Errors\n"
    yield "All are children of `DenizenError`; each message says what happened, to what, and what to do.\n"
    yield "| error | meaning |\n|---|---|"
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, errors.DenizenError):
            yield f"| `{name}` | {_cell(inspect.getdoc(kind) or '')} |"
    kinds = ", ".join(
        f"`{kind}`" + (" (retried)" if kind in errors.RETRIABLE else "") for kind in get_args(errors.ErrorKind)
    )
    yield f"\nA `ModelError` has a `kind`: {kinds}."


def _structs(kinds: tuple[type[Any], ...]) -> Iterator[str]:
    for kind in kinds:
        yield f"\n### `{msgspec.inspect.type_info(kind).tag}`\n"
        yield from _fields(kind)


def _fields(kind: type[Any]) -> Iterator[str]:
    yield f"{inspect.getdoc(kind)}\n"
    fields = msgspec.structs.fields(kind)
    if fields:
        yield "| field | type |\n|---|---|"
    for field in fields:
        yield f"| `{field.name}` | {_cell(_type(field.type))} |"


def _type(kind: Any) -> str:
    name = kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)
    return f"`{re.sub(r'[a-z_]+[.]', '', name)}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "settings.md": settings_page,
    "events.md": events_page,
    "errors.md": errors_page,
}


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
