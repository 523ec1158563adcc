"""Special tokens of models, which a server left in a text."""

import re
from typing import Final

from denizen.config.pattern import pattern

_INNER: Final = r"[\w▁./:\"-]{1,48}"
_TOKEN: Final = pattern(rf"(?:<[|｜]{_INNER}[|｜]?|<{_INNER}[|｜])>\Z|[|｜]DSML[|｜]\Z")
_LONGEST_TOKEN: Final = 52


def scrub(text: str) -> str:
    """The text without the special tokens of models: `<|word|>`, `<|word>`, `<word|>`, `<｜word｜>`.

    Where the text around a token makes another one when it is gone, that is taken out, too.
    """
    if "|" not in text and "｜" not in text:
        return text
    kept: list[str] = []  # characters
    for piece in re.split(r"([>｜])", text):
        kept.extend(piece)
        if piece in {">", "｜"} and (token := _TOKEN.search("".join(kept[-_LONGEST_TOKEN:]))):
            del kept[len(kept) - len(token[0]) :]
    return "".join(kept)
