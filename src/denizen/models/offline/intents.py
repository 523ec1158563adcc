"""Which answer fits which words: the first phrase of `phrases.txt` that fits decides."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from denizen.models.offline import about, code, files, history, memory, project, search, testing
from denizen.models.offline.phrases import read_phrases
from denizen.models.offline.plan import Plan
from denizen.models.offline.question import Question

Answer = Callable[[Question, re.Match[str]], Plan | str]

LONGEST: Final = 400
"""Characters of a question; only what is to be remembered may have more."""

_ANSWERS: Final[Mapping[str, Answer]] = {
    "recalled": memory.recalled,
    "remembered": memory.remembered,
    "status": history.status,
    "changes": history.changes,
    "tests": testing.tests,
    "how": testing.how,
    "not_run": testing.not_run,
    "definition": search.definition,
    "callers": code.callers,
    "longest": code.longest,
    "complicated": code.complicated,
    "text": search.text,
    "located": files.located,
    "whereabouts": files.whereabouts,
    "content": files.content,
    "dependencies": project.dependencies,
    "languages": project.languages,
    "listed": files.listed,
    "greeted": about.greeted,
    "introduced": about.introduced,
    "purpose": about.purpose,
}


def plan_for(asked: Question) -> Plan | str | None:
    """How to answer, or the answer; None where no phrase fits."""
    short = len(asked.text) <= LONGEST
    for answer, phrase in _phrases():
        if (short or answer is memory.remembered) and (found := phrase.match(f" {asked.text}")):
            return answer(asked, found)
    return None


@functools.cache
def _phrases() -> Sequence[tuple[Answer, re.Pattern[str]]]:
    return [(_ANSWERS[name], pattern) for name, pattern in read_phrases()]
