"""Answers about itself: what it is, and what can be asked."""

import re

from denizen.models.offline.question import Question

SELF = "I'm Denizen's offline model: rules, not a language model"

_QUESTIONS = """\
- What language is this project?
- List the files · What does src contain? · What does README.md contain?
- What are the dependencies?
- Where is NAME defined? · Find the text "NAME" · Who calls NAME?
- What are the longest functions? · What are the most complex functions? (in `denizen code`)
- What changed recently?
- Which tests are there? · How do I run the tests?
- Remember that … · What do you remember?"""


def greeted(asked: Question, found: re.Match[str]) -> str:
    """A greeting back, and what can be asked."""
    return f"Hello! {_asked()}"


def introduced(asked: Question, found: re.Match[str]) -> str:
    """What can be asked."""
    return _asked()


def purpose(asked: Question, found: re.Match[str]) -> str:
    """That it can't say what a project is for, where that may be written, and what can be asked."""
    return f'What a project is for I can\'t tell; its README may: "What does the README contain?" {_asked()}'


def _asked() -> str:
    return (
        f"{SELF}. I understand questions like these:\n\n{_QUESTIONS}\n\n"
        "For all else set a key (ANTHROPIC_API_KEY, OPENAI_API_KEY, …) or start a local model server such as Ollama."
    )
