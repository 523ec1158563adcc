"""A home with some life in it: what screenshots, and tests of every view, look at."""

import itertools
from pathlib import Path
from typing import Any

from tests.cli.gateway import GatewayProgram, key_of
from tests.web.gateway import words_of

from denizen.messages import AssistantMessage, Text, Thinking, ToolCall, Usage
from denizen.testing import LoopbackOpenAI
from denizen.testing.loopback import LoopbackRequest

ANSWER = """The shop closes at **six**, on Sundays at four. I changed three things:

1. `opening.py` knows Sundays now,
2. the sign says so, and
3. there is a test.

```python
def closes_at(day: str) -> int:
    \"\"\"The hour at which the shop closes.\"\"\"
    return 16 if day == "Sunday" else 18
```

| day | opens | closes |
|---|--:|--:|
| Monday to Saturday | 9 | 18 |
| Sunday | 10 | 16 |

> The landlord asked for quiet after eight.

See [the town's rules](https://town.example/rules) and ![the sign](https://town.example/sign.png).
"""
BEFORE = 'def closes_at(day):\n    return 18\n\n\nSIGN = "Open until six"\n'
AFTER = (
    'def closes_at(day):\n    return 16 if day == "Sunday" else 18\n\n\nSIGN = "Open until six, Sundays until four"\n'
)
_IDS = itertools.count(1)


def said(*parts: Any) -> AssistantMessage:
    """An answer of the model that costs something."""
    calls = any(isinstance(part, ToolCall) for part in parts)
    usage = Usage(2100, 240, 8200)
    return AssistantMessage([*parts], usage=usage, stop_reason="tool_calls" if calls else "end")


def call(name: str, **args: Any) -> ToolCall:
    """A call with an id of its own."""
    return ToolCall(f"call-{next(_IDS)}", name, args)


def reply_to(request: LoopbackRequest) -> AssistantMessage:
    """The scripted model: it answers by the words of the last message."""
    words = words_of(request.json)
    if "Sundays" in words and "hour" in words:
        return said(
            Thinking("They want other hours on Sundays. I'll read the file first, then change it."),
            Text("I'll look at the file first."),
            call("read", path="opening.py"),
        )
    if "return 18" in words and "edit" not in words:
        return said(call("edit", path="opening.py", old=BEFORE, new=AFTER))
    if "sweep" in words:
        return said(Text("I'll tidy up the folder."), call("bash", command="rm -rf build dist && git status --short"))
    if "plan" in words:
        return said(Text("A plan for the week: shelves on Monday, paint on Tuesday, the sign on Wednesday."))
    return said(Text(ANSWER))


async def furnish(gateway: GatewayProgram, server: LoopbackOpenAI, workspace: Path) -> dict[str, str]:
    """Some conversations, by name: an edit of a file, a plan, a question that waits."""
    server.otherwise = reply_to
    (workspace / "opening.py").write_text(BEFORE)
    await gateway.post("plan", "What's the plan for the week?")
    await gateway.post("hours", "Please change the hour at which we close on Sundays to four, in `opening.py`.")
    await gateway.post("arabic", "متى يغلق المتجر يوم الأحد؟")
    await gateway.post("sweep", "Please sweep the workspace: remove what was built")
    for chat in ("plan", "hours", "arabic", "sweep"):
        await gateway.replies(chat, 1)
    return {chat: key_of(chat) for chat in ("plan", "hours", "arabic", "sweep")}
