"""Quotes the agent's text inside a command, so that the server's parser takes it as it is."""

import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_MARKUP = re.compile(r"(\\*)\[(?=[a-zA-Z#/@])")


def one_line(text: str) -> str:
    """The text without line breaks and other control characters: a line break would end the command."""
    return _CONTROL.sub(" ", text).strip()


def quoted(text: str) -> str:
    r"""The text in quotation marks, as one argument of a command.

    `.` `,` `;` THEN and prepositions don't split it there. `[x` is escaped: as markup it would vanish, and an unmatched
    closing tag ends the session of everyone who is shown it. The parser can't take a single character or a last
    backslash in quotation marks: a letter or digit stays without, and a space is added to all else.
    """
    if len(text) == 1 and text.isalnum():
        return text
    text = _MARKUP.sub(r"\1\1\\[", one_line(text))
    text = re.sub(r"\\'", r"\\\\'", text).replace('"', '\\"')
    return f'"{text} "' if len(text) < 2 or text.endswith("\\") else f'"{text}"'


def unescaped(text: str) -> str:
    r"""The text before it was escaped: `\[x` is `[x` again."""
    return re.sub(r"(\\+)\[(?=[a-zA-Z#/@])", lambda found: "\\" * (len(found[1]) // 2) + "[", text)
