"""A hook of mkdocs: marks single words of code, so that docs/assets/tables.css can keep them on one line in tables."""

import re
from typing import Any

_WORD = re.compile(r"<code>([^<\s]{1,40})</code>")


def on_page_content(html: str, **_: Any) -> str:
    """The page with `class="word"` on code that is one word: an option, a setting, a path."""
    return _WORD.sub(r'<code class="word">\1</code>', html)
