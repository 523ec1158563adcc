"""A strict reader of MarkdownV2: refuses all that Telegram documents as an error.

https://core.telegram.org/bots/api#markdownv2-style
"""

import re

_TOKEN = re.compile(r"\\(?P<escaped>.)|```[\w+#.-]*\n?|__|\|\||\]\((?:\\.|[^)\\])*\)|\n>?|.", re.DOTALL)
_TOKEN_IN_CODE = re.compile(r"\\(?P<escaped>.)|```|.", re.DOTALL)
_MARKS = ("```", "__", "||", "_", "*", "~", "`")
_RESERVED = "[]()>#+-=|{}.!"


def visible_text(markup: str) -> str:
    """The text that a reader sees. Raises ValueError, with Telegram's words, for markup that isn't well-formed."""
    shown, at = "", 0
    open_marks: list[str] = []
    quoted_inside: int | None = None  # the marks that were open where a quotation began
    while at < len(markup):
        is_code = bool(open_marks) and open_marks[-1] in {"`", "```"}
        match = (_TOKEN_IN_CODE if is_code else _TOKEN).match(markup, at)
        assert match
        at, token = match.end(), match[0]
        if match["escaped"]:
            shown += match["escaped"]
        elif is_code and "`" not in token:
            shown += token
        elif token == "\n>" or (token == ">" and match.start() == 0):
            quoted_inside = len(open_marks) if quoted_inside is None else quoted_inside
            shown += token[:-1]
        elif token == "\n":
            if quoted_inside not in {None, len(open_marks)}:
                raise ValueError(f"can't parse entities: can't find end of {open_marks[-1]!r} in a blockquote")
            quoted_inside, shown = None, shown + token
        elif token == "[":
            open_marks.append(token)
        elif token.startswith("](") and open_marks[-1:] == ["["]:
            open_marks.pop()
        elif mark := next((mark for mark in _MARKS if token.startswith(mark)), ""):
            _toggle(mark, open_marks)
        elif token[0] in _RESERVED:
            raise ValueError(f"can't parse entities: character {token[0]!r} is reserved and must be escaped")
        else:
            shown += token
    if open_marks:
        raise ValueError(f"can't parse entities: can't find end of {open_marks[-1]!r}")
    return shown


def _toggle(mark: str, open_marks: list[str]) -> None:
    if open_marks[-1:] == [mark]:
        open_marks.pop()
    elif mark in open_marks or open_marks[-1:] == ["```"]:
        raise ValueError(f"can't parse entities: can't find end of {open_marks[-1]!r}")
    else:
        open_marks.append(mark)
