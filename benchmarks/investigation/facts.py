"""The answer of the investigation, and whether it is true of the repository."""

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_CODE = re.compile(r"`([^`]+)`")
_LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENDMARKER}


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence, and the places in the repository where the code that it quotes is."""

    says: str
    where: Sequence[str]

    def wrong(self, repository: Path) -> list[str]:
        """What it quotes that isn't there."""
        return [
            f"{code} in {place}"
            for code, place in zip(quoted(self.says), self.where, strict=True)
            if not _holds(_source(repository, place), code)
        ]


FACTS = [Fact(**fact) for fact in tomllib.loads(Path(__file__).with_name("facts.toml").read_text("utf-8"))["fact"]]


def quoted(text: str) -> list[str]:
    """The code in it."""
    return _CODE.findall(text)


def _source(repository: Path, place: str) -> str:
    """The text of a file, or of one definition in it: `client.py/ClientSession/_request`."""
    file, *names = place.split("/")
    text = (repository / file).read_text("utf-8")
    node: ast.AST = ast.parse(text)
    for name in names:
        node = next(each for each in ast.iter_child_nodes(node) if getattr(each, "name", None) == name)
    return (ast.get_source_segment(text, node) if names else text) or ""


def _holds(source: str, code: str) -> bool:
    """Whether the code is in the source, however either is laid out."""
    return f" {' '.join(_words(code))} " in f" {' '.join(_words(source))} "


def _words(source: str) -> Iterator[str]:
    lines = io.StringIO("\n".join(line.strip() for line in source.splitlines()))
    return (token.string for token in tokenize.generate_tokens(lines.readline) if token.type not in _LAYOUT)
