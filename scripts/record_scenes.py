"""Record as SVG how Denizen explains a failing test and repairs it. Tools and commits are real; the model is a script.

python -m scripts.record_scenes docs/images
"""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scripts.record import record, save

from denizen.testing import LoopbackOpenAI

FILES = {
    "shop.py": """\
PRICES = {"lamp": 40, "chair": 25}


def total(articles: list[str]) -> int:
    \"""The price of all articles.\"""
    return sum(PRICES[article] for article in set(articles))
""",
    "test_shop.py": """\
from shop import total


def test_different_articles() -> None:
    assert total(["lamp", "chair"]) == 65


def test_two_lamps() -> None:
    assert total(["lamp", "lamp"]) == 80
""",
    "pytest.ini": "[pytest]\naddopts = -p no:cacheprovider -p no:asyncio -p no:inline_snapshot\n",
    ".gitignore": "__pycache__/\n",
}
QUESTION = (
    """\
I run the tests first, and look at what they call.
$(run python -m pytest -q --tb=no)
$(view shop.py/total)""",
    """\
$(done # Two lamps cost as much as one

`total` makes a **set** of the articles, in which each is only once, whatever was ordered:

```python
return sum(PRICES[article] for article in set(articles))
```

| order | expected | `total` |
|---|--:|--:|
| lamp, chair | 65 | 65 |
| lamp, lamp | 80 | **40** |

- Leave out `set(…)`: nothing else in this project rests on it.
- `denizen code "Fix total"` would do that, and run the tests.)""",
)
ASK = ('denizen ask --profile coder "Why does test_two_lamps fail?"',)
TASK = (
    """\
I look at what the test calls, and plan.
$(task plan <<'END'
Find out why two lamps cost as much as one
Fix total
END
)
$(view shop.py/total)
$(analyze callers total)""",
    """\
`total` sums over a set, in which each article is only once.
$(note total: set(articles) loses repeated articles)
$(task done 1)
$(edit shop.py/total replace <<'END'
def total(articles: list[str]) -> int:
    \"""The price of all articles.\"""
    return sum(PRICES[article] for article in articles)
END
)
$(run python -m pytest -q)""",
    """\
$(task done 2)
$(done `total` summed over a set, so that the second lamp was lost. It sums over the list now, and both tests pass.

## Commit
Count every article in a total

A set holds each article once, so repeated ones cost nothing.)""",
)
CODE = (
    "python -m pytest -q --tb=no",
    'denizen code "test_two_lamps fails. Fix it." --validate auto --commit',
    "git log -1 --oneline --no-decorate --stat",
)
WHO = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_PAGER": "",
}


def main(folder: Path) -> None:
    """Record both scenes."""
    play(QUESTION, ASK, folder / "ask.svg")
    play(TASK, CODE, folder / "code.svg")


def play(replies: Sequence[str], commands: Sequence[str], out: Path) -> None:
    """Make the project, and let the script be played."""
    with tempfile.TemporaryDirectory() as temporary, LoopbackOpenAI() as server:
        home, shop = Path(temporary, "home"), Path(temporary, "shop")
        _make(shop)
        home.mkdir(mode=0o700)
        settings = f'model = "example:model"\n[providers.example]\nbase_url = "{server.base_url}"\n'
        (home / "denizen.toml").write_text(settings)
        server.say(*replies)
        own = {name: value for name, value in WHO.items() if name != "GIT_CONFIG_GLOBAL"}  # commands wouldn't get it
        own |= {"HOME": os.environ["HOME"]}  # where a toolchain may be that the checks need
        save({command: record(shlex.split(command), str(home), shop, **own) for command in commands}, out)


def _make(shop: Path) -> None:
    shop.mkdir()
    for name, text in FILES.items():
        (shop / name).write_text(text)
    for command in ("init --quiet --initial-branch=main", "add --all", "commit --quiet --message=Shop"):
        subprocess.run(["git", *command.split()], cwd=shop, env=os.environ | WHO, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
