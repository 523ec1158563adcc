"""Special tokens taken out of a text."""

import re
from typing import Final

_WORD: Final = r"[\w▁./:\"-]{1,48}"
_TOKEN: Final = re.compile(rf"(?:<[|｜]{_WORD}[|｜]?|<{_WORD}[|｜])>\Z|[|｜]DSML[|｜]\Z")
_LONGEST: Final = 52


def scrub(text: str) -> str:
    """The text without the special tokens of models: `<|word|>`, `<|word>`, `<word|>`, `<｜word｜>`.

    What stands around a token may make another when it is gone: that is taken out, too.
    """
    if "|" not in text and "｜" not in text:
        return text
    kept: list[str] = []  # characters
    for piece in re.split(r"([>｜])", text):
        kept.extend(piece)
        if piece in {">", "｜"} and (token := _TOKEN.search("".join(kept[-_LONGEST:]))):
            del kept[len(kept) - len(token[0]) :]
    return "".join(kept)
