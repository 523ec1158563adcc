"""Markdown on a terminal. Imports rich, so it is imported once there is something to render."""

import functools
import os
import re
from collections.abc import Iterable
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement, TableElement
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.theme import Theme

PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable("image")
"""HTML tags and images are shown as text: nothing of `List<str>` may vanish. Line breaks are kept."""

_PADDING = re.compile(r"(?: |\x1b\[[\d;]*m)+$")


def split_blocks(text: str) -> tuple[str, str]:
    """The blocks of a growing Markdown text that no further text can change, and the rest."""
    whole, _, _ = text.rpartition("\n")  # an unfinished line may still turn out to continue the block above it
    begins = [token.map[0] for token in PARSER.parse(whole) if token.level == 0 and token.map]
    finished = "".join(f"{line}\n" for line in whole.split("\n")[: max(begins, default=0)])
    return finished, text[len(finished) :]


def rendered(text: str, columns: int) -> list[str]:
    """The lines that show Markdown on a terminal, at most that many cells wide; coloured unless NO_COLOR is set."""
    console = _console()
    console.width = columns
    with console.capture() as capture:
        console.print(_Rendered(text))
    lines = [
        _PADDING.sub(lambda padding: "\x1b[m" if "\x1b" in padding[0] else "", line)
        for line in capture.get().split("\n")
    ]
    shown = [number for number, line in enumerate(lines) if _PADDING.sub("", line)]
    return lines[shown[0] : shown[-1] + 1] if shown else []


def last_lines(block: str, columns: int, rows: int) -> list[str]:
    """The last lines of a block that isn't finished; of long code no more than these is rendered."""
    if block.startswith(("```", "~~~")):
        fence, *code = block.split("\n")
        block = "\n".join([fence, *code[-rows - 1 :]])
    return rendered(block, columns)[-rows:]


class _Heading(Heading):
    """Not centred."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text


class _Code(CodeBlock):
    """Code in the terminal's own colours, which suit light and dark backgrounds."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = Syntax(str(self.text).rstrip(), self.lexer_name, theme="ansi_dark", word_wrap=True)
        yield Padding(code, (0, 0, 0, 2))


class _Table(TableElement):
    """Without empty lines around it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                table.show_edge = False
            yield table


class _Rendered(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "table_open": _Table,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)  # where a link leads is shown
        self.parsed = PARSER.parse(text)


def _keep_line_breaks(tokens: Iterable[Token]) -> None:
    for token in tokens:
        if token.type == "softbreak":
            token.type = "hardbreak"
        _keep_line_breaks(token.children or ())


PARSER.core.ruler.push("line_breaks", lambda state: _keep_line_breaks(state.tokens))


@functools.cache
def _console() -> Console:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    theme = Theme(
        {"markdown.code": "cyan", "markdown.h1": "bold underline", "markdown.h2": "bold", "markdown.h3": "bold"}
    )
    return Console(force_terminal=True, color_system=None if plain else "auto", theme=theme, highlight=False)
