"""What the documentation shows: fenced blocks of the README and the pages, and the examples that they include."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
EXAMPLES = sorted((DOCS / "examples").rglob("*.py"))

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
_INCLUDED = re.compile(r"^--8<--\n(.+)\n--8<--$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block, and where it is; `output` is the block of `text` right after it."""

    page: Path
    line: int
    language: str
    text: str
    output: str | None = None

    @property
    def place(self) -> str:
        """`docs/tools.md:12`"""
        return f"{name(self.page)}:{self.line}"


def name(page: Path) -> str:
    """What a page is called."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, *languages: str) -> list[Block]:
    """The page's blocks in these languages, in order, with what they include in its place."""
    return [block for block in _blocks(page) if block.language in languages]


def all_blocks(*languages: str) -> list[Block]:
    """Those of all pages."""
    return [block for page in PAGES for block in blocks(page, *languages)]


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for match in _FENCE.finditer(text):
        output = _FENCE.match(text, match.end() + 2) if text[match.end() :].startswith("\n\n```text") else None
        yield Block(
            page,
            text.count("\n", 0, match.start()) + 2,
            match["language"],
            _included(_outdented(match)),
            _outdented(output) if output else None,
        )


def _outdented(match: re.Match[str]) -> str:
    return re.sub(f"^{match['indent']}", "", match["text"], flags=re.MULTILINE)


def _included(text: str) -> str:
    return _INCLUDED.sub(lambda match: (ROOT / match[1]).read_text("utf-8").rstrip("\n"), text)
