"""The languages whose structure is known, and how a file shows which one it is written in."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

_INTERPRETER = re.compile(rb"#![ \t]*(?:\S*/)?(?:env(?:[ \t]+-\S+|[ \t]+\w+=\S*)*[ \t]+(?:\S*/)?)?([a-z]+)")
HEAD = 256
"""Bytes of a file's beginning that may tell its language."""


@dataclass(frozen=True, slots=True)
class Language:
    """A language: the package of its grammar and the function there, and what its files are called.

    `names` are endings (`.py`) and whole names (`Rakefile`); `interpreters` stand in the first line of a script.
    `queries` names the files with its queries, where there are several: what is found by more than one counts as the
    first says.
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

_BY_NAME = {name: language for language, told in LANGUAGES.items() for name in told.names}
_BY_INTERPRETER = {name: language for language, told in LANGUAGES.items() for name in told.interpreters}
_OTHER_WORDS = {"golang": "go", "c++": "cpp", "c#": "csharp", "shell": "bash"}
_CPP_SIGN = re.compile(rb"^[ \t]*(?:class|namespace|template|using)\b|\bpublic:|std::", re.MULTILINE)


def language_of(path: str, head: bytes = b"") -> str:
    """The language of a file by its name, else by the first line of `head`, how it begins; empty: none that is known.

    A header `.h` is C++ where `head`, which may be all of it, looks like that.
    """
    name = path.rpartition("/")[2]
    language = _BY_NAME.get(name) or _BY_NAME.get(PurePosixPath(name).suffix.lower(), "")
    if language == "c" and name.endswith(".h") and _CPP_SIGN.search(head):
        return "cpp"
    if language or "." in name:
        return language
    interpreter = _INTERPRETER.match(head[:HEAD])
    return _BY_INTERPRETER.get(interpreter[1].decode(), "") if interpreter else ""


def is_of_type(path: str, word: str) -> bool:
    """Whether a file is in the language that a person means by a word, or ends in it where it means none."""
    language = named_language(word)
    if not language:
        return path.casefold().endswith(f".{word.strip().lstrip('.').casefold()}")
    also = {"typescript": {"tsx"}, "cpp": {"c"} if path.endswith(".h") else set[str]()}
    return language_of(path) in {language, *also.get(language, ())}


def named_language(word: str) -> str:
    """The language that a person means by a word (`TypeScript`, `ts`, `c++`); empty: none that is known."""
    word = word.strip().lower().lstrip(".")
    return word if word in LANGUAGES else _OTHER_WORDS.get(word) or _BY_NAME.get(f".{word}", "")
