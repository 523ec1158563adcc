"""Documents every setting: for `denizen config init` and the reference in the documentation."""

import ast
import functools
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args, get_origin

import msgspec

from denizen.config import settings
from denizen.config.check import describe, fields, is_table
from denizen.config.toml import to_toml

_HEAD = """\
# Denizen's settings. Lines without a space after the # show the defaults. To change one, remove its # and the # of the
# [table] above it. `denizen config check` shows what is in effect.
# `${NAME}` is a variable of the environment, or of the file .env next to this one: the place for keys.

"""

_EXAMPLES = {"a number": "1.0", "an integer": "1", "a list": "[]", "a string": '"advisories.json"'}
"""Values of settings without a default, by what their types begin with."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting or a table: its dotted name, what it takes, its default as TOML ("": none), and what it means."""

    name: str
    type: str
    default: str
    doc: str


def all_settings() -> Iterator[Setting]:
    """Every setting and table of `denizen.toml`, in order: `agent`, `agent.workspace_dir`, `providers.NAME.base_url`.

    Those of the tables in a list follow it as `policy.rules[].tool`.
    """
    return _settings(settings.Config, "")


def settings_of(table: type[msgspec.Struct], name: str) -> Iterator[Setting]:
    """The table of a world and its settings, as `all_settings` has them."""
    yield Setting(name, "a table", "", _docs(inspect.getfile(table))[table.__name__, ""])
    yield from _settings(table, f"{name}.")


def starter_file() -> str:
    """A first `denizen.toml`: every setting and table with its meaning and default, commented out.

    So a line that is added at its end is in no table.
    """
    text = _HEAD
    for setting in all_settings():
        if "[]" in setting.name:
            continue
        if setting.type == "a table" and not setting.default:
            text += f"\n# {setting.doc}\n#[{setting.name}]\n"
            continue
        value = setting.default
        if not value:  # the first of its choices, or an example by what the type begins with
            choice = re.match(r'"[^"]*"', setting.type)
            by_type = (example for begins, example in _EXAMPLES.items() if setting.type.startswith(begins))
            value = f"{choice[0] if choice else next(by_type)}  # an example: it has no default"
        text += f"# {setting.doc}\n#{setting.name.rpartition('.')[2]} = {value}\n"
    return text


def _settings(table: type[msgspec.Struct], prefix: str) -> Iterator[Setting]:
    for name, field in fields(table).items():
        inner = (get_args(field.type) or [field.type])[-1]
        full = prefix + name + (".NAME" if get_origin(field.type) is dict and is_table(inner) else "")
        if get_origin(field.type) is list or not is_table(inner):
            default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
            text = "" if default in (None, msgspec.NODEFAULT) else to_toml(default)
            tables = table.__mro__[: table.__mro__.index(msgspec.Struct)]
            docs = (_docs(inspect.getfile(each)).get((each.__name__, name)) for each in tables)
            doc = next(filter(None, docs), "")
            yield Setting(full, describe(field.type), text, doc)
        else:
            yield Setting(full, "a table", "", _docs(inspect.getfile(inner))[inner.__name__, ""])
        if is_table(inner):
            yield from _settings(inner, f"{full}[]." if get_origin(field.type) is list else f"{full}.")


@functools.cache
def _docs(file: str) -> dict[tuple[str, str], str]:
    """The docstring of each setting in a file of settings, by class and name; that of the class under the name ""."""
    docs: dict[tuple[str, str], str] = {}
    for table in ast.parse(Path(file).read_text("utf-8")).body:
        if isinstance(table, ast.ClassDef):
            docs[table.name, ""] = ast.get_docstring(table) or ""
            for field, text in zip(table.body, table.body[1:], strict=False):
                match field, text:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(doc))):
                        docs[table.name, name] = " ".join(doc.split())
    return docs
