"""The languages whose structure we can read: how a file shows which one it is written in, and their grammars."""

import functools
import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tree_sitter

QUERIES = Path(__file__).with_name("queries")
HEAD_BYTES = 256
"""Bytes at the beginning of a file that may name its interpreter."""


@dataclass(frozen=True, slots=True)
class Language:
    """A language: the package of its grammar and the function there, and the names of its files.

    `names` are suffixes (`.py`) and whole names (`Rakefile`); `interpreters` are those of a script's first line.
    `queries` names the query files if there are several; if two match, the first one counts.
    """

    package: str
    names: tuple[str, ...]
    interpreters: tuple[str, ...] = ()
    function: str = "language"
    queries: tuple[str, ...] = ()
    docstrings: bool = False


LANGUAGES: Mapping[str, Language] = {
    "python": Language("tree_sitter_python", (".py", ".pyi", ".pyw"), ("python",), docstrings=True),
    "javascript": Language(
        "tree_sitter_javascript",
        (".js", ".mjs", ".cjs", ".jsx"),
        ("node", "bun"),
        queries=("javascript", "jsx", "ecmascript"),
    ),
    "typescript": Language(
        "tree_sitter_typescript",
        (".ts", ".mts", ".cts"),
        ("deno", "tsx"),
        function="language_typescript",
        queries=("typescript", "ecmascript"),
    ),
    "tsx": Language(
        "tree_sitter_typescript", (".tsx",), function="language_tsx", queries=("typescript", "jsx", "ecmascript")
    ),
    "go": Language("tree_sitter_go", (".go",)),
    "rust": Language("tree_sitter_rust", (".rs",)),
    "java": Language("tree_sitter_java", (".java",)),
    "c": Language("tree_sitter_c", (".c", ".h"), queries=("c", "c_family")),
    "cpp": Language(
        "tree_sitter_cpp",
        (".cpp", ".cc", ".cxx", ".hpp", ".hh", ".hxx", ".ipp", ".inl", ".h++", ".c++"),
        queries=("cpp", "c_family"),
    ),
    "csharp": Language("tree_sitter_c_sharp", (".cs",)),
    "ruby": Language(
        "tree_sitter_ruby", (".rb", ".rake", ".gemspec", ".ru", "Rakefile", "Gemfile", "Vagrantfile"), ("ruby",)
    ),
    "php": Language("tree_sitter_php", (".php", ".phtml"), ("php",), function="language_php"),
    "lua": Language("tree_sitter_lua", (".lua",), ("lua", "luajit")),
    "bash": Language(
        "tree_sitter_bash", (".sh", ".bash", ".bats", ".bashrc", ".profile"), ("sh", "bash", "dash", "zsh")
    ),
    "kotlin": Language("tree_sitter_kotlin", (".kt", ".kts")),
    "swift": Language("tree_sitter_swift", (".swift",)),
}

_BY_NAME = {name: language for language, each in LANGUAGES.items() for name in each.names}
_BY_INTERPRETER = {name: language for language, each in LANGUAGES.items() for name in each.interpreters}
_OTHER_WORDS = {"golang": "go", "c++": "cpp", "c#": "csharp", "shell": "bash"}
_CPP_SIGN = re.compile(rb"^[ \t]*(?:class|namespace|template|using)\b|\bpublic:|std::", re.MULTILINE)
_INTERPRETER = re.compile(rb"#![ \t]*(?:\S*/)?(?:env(?:[ \t]+-\S+|[ \t]+\w+=\S*)*[ \t]+(?:\S*/)?)?([a-z]+)")


def language_of(path: str, head: bytes = b"") -> str:
    """The language of a file by its name, else by the first line of `head`, its beginning; empty if unknown.

    A header `.h` is C++ where `head`, which may be the whole file, looks like it.
    """
    name = path.rpartition("/")[2]
    language = _BY_NAME.get(name) or _BY_NAME.get(PurePosixPath(name).suffix.lower(), "")
    if language == "c" and name.endswith(".h") and _CPP_SIGN.search(head):
        return "cpp"
    if language or "." in name:
        return language
    interpreter = _INTERPRETER.match(head[:HEAD_BYTES])
    return _BY_INTERPRETER.get(interpreter[1].decode(), "") if interpreter else ""


def is_of_type(path: str, word: str) -> bool:
    """Whether a file is in the language that a person means by a word, or has the word as its suffix."""
    language = named_language(word)
    if not language:
        return path.casefold().endswith(f".{word.strip().lstrip('.').casefold()}")
    also = {"typescript": {"tsx"}, "cpp": {"c"} if path.endswith(".h") else set[str]()}
    return language_of(path) in {language, *also.get(language, ())}


def named_language(word: str) -> str:
    """The language that a person means by a word (`TypeScript`, `ts`, `c++`); empty if unknown."""
    word = word.strip().lower().lstrip(".")
    return word if word in LANGUAGES else _OTHER_WORDS.get(word) or _BY_NAME.get(f".{word}", "")


@functools.cache
def grammar(language: str) -> "tree_sitter.Language":
    """The grammar of one of `LANGUAGES`, loaded when the first file of that language is read."""
    import tree_sitter

    known = LANGUAGES[language]
    pointer: object = getattr(importlib.import_module(known.package), known.function)()
    return tree_sitter.Language(pointer)


@functools.cache
def symbol_query(language: str) -> "tree_sitter.Query":
    """The query for what files of a language define and refer to."""
    import tree_sitter

    names = LANGUAGES[language].queries or (language,)
    text = "\n".join((QUERIES / f"{name}.scm").read_text("utf-8") for name in names)
    return tree_sitter.Query(grammar(language), text)


def parse(source: bytes, language: str) -> "tree_sitter.Tree":
    """The tree of a UTF-8 text. Call it only in functions that `parsed` runs: hostile text takes forever."""
    import tree_sitter

    return tree_sitter.Parser(grammar(language)).parse(source)
