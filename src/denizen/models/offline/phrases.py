"""Phrases that people use, as patterns; `phrases.txt` has them, below the name of the answer to give.

A phrase is a row of words. `(a|b)` is one of several, `[a|b]` may be missing, `[a|b]*` may come several times, `…` is
anything, and `_` is a space within a word. What is in capitals is explained in `WORDS`; of these NAME (a word, or
anything in quotes), QUOTED, REST (words), FILE, PLACE and FOLDER (where to look), COUNT and LANGUAGE are found.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from denizen.models.offline.question import QUOTED

_HERE = r"(?:project|repo(?:sitory)?|code ?base|code|workspace|folder|directory|package|program|app|library|files?)"
_PLAIN = r"readme|licen[cs]e|makefile|dockerfile|changelog|gemfile|justfile"
"""Names of files that need no ending."""
_DETERMINERS = r"(?:(?:the|this|my|our|all|whole|of|file|folder|directory) )*"

WORDS: Final = {
    "HERE": _HERE,
    "THE": r"(?:the|this|that|my|our|its|these|those|a|an|any|some|all|every|each|of|me|us|where|other)",
    "KIND": r"(?:class|function|method|type|variable|constant|struct|interface|enum|trait|module|macro|symbol|fixture)",
    "TEXT": r"(?:texts?|strings?|phrases?|words?|terms?|patterns?)",
    "FINDS": r"(?:occurrences?|mentions?|uses|usages?|references?|matches|lines?|places?|callers|text|string|words?)",
    "HOLDS": r"(?:contains?|mentions?|uses?|says?|have|has|includes?|calls?|imports?)",
    "LISTING": r"(?:files?|folders?|directory|directories|tree|structure|layout|contents?)(?: and (?:files|folders))?",
    "TIME": r"(?:recently|lately|last|here|since|today|yesterday|now|so far|(?:in the |this |last )(?:last )?\w+)",
    "NAME": rf"(?P<name>{QUOTED}|\S+)",
    "QUOTED": rf"(?P<name>{QUOTED})",
    "REST": r"(?P<name>.+?)",
    "FILE": rf"(?P<name>{QUOTED}|\S*[/\\.]\w\S*|{_PLAIN})",
    "PLACE": (
        rf"{_DETERMINERS}(?:{_HERE}|(?P<place>{QUOTED}|[\w.-]*[/.][\w./-]*|src|lib|tests?|docs?|app|scripts|{_PLAIN})"
        rf"(?: {_HERE})?)"
    ),
    "FOLDER": rf"{_DETERMINERS}(?:{_HERE}|(?P<place>{QUOTED}|\S+)(?: {_HERE})?)",
    "SOMEFOLDER": rf"(?P<place>{QUOTED}|(?!(?:the|this|that|my|our|current|whole) )\S+) (?:folder|directory)",
    "COUNT": r"(?:few |couple of )?(?P<count>\w+)",
    "LANGUAGE": r"(?P<language>[\w+#]+)",
}

_CAPITALS: Final = re.compile(r"\b[A-Z]{3,}\b")


def read_phrases() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Names of answers, and what matches a sentence (with a space before it) that asks for them."""
    answer = ""
    for line in Path(__file__).with_name("phrases.txt").read_text("utf-8").splitlines():
        if line.startswith(" "):
            yield answer, pattern(line)
        elif not line.startswith("#"):
            answer = line.removesuffix(":")


def pattern(phrase: str) -> re.Pattern[str]:
    """What matches a sentence (with a space before it) that is the phrase."""
    return re.compile("".join(map(_word, phrase.split())) + "$", re.IGNORECASE)


def _word(word: str) -> str:
    if word == "…":
        return r"(?: .*?)?"
    optional = word.startswith("[")
    inner = word[1:].rstrip("*").removesuffix("]") if optional else word
    inner = _CAPITALS.sub(lambda name: WORDS[name[0]], inner.replace("_", " "))
    return f"(?: (?:{inner}))" + ("" if not optional else "*" if word.endswith("*") else "?")
