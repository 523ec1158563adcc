"""Answers about what is kept: remember, recall."""

import re

from denizen.models.offline.plan import Plan, run
from denizen.models.offline.question import Question

_ASKED = re.compile(
    r".*?\b(?:remember|memori[sz]e|forget|keep in mind|a note|note)\b(?:\s+(?:down|this|that|of)\b)*[\s:,]*",
    re.IGNORECASE | re.DOTALL,
)
"""What comes before the fact."""


def remembered(asked: Question, found: re.Match[str]) -> Plan:
    """Keep what was said, in the user's words."""
    fact = _ASKED.sub("", asked.said, count=1)
    told = yield from run("remember", text=fact)
    return f"I'll remember: {fact}\n\n{told}"


def recalled(asked: Question, found: re.Match[str]) -> Plan:
    """What is kept about something, or the latest."""
    about = asked.name(found.groupdict().get("name"))
    facts = yield from run("recall", query=about)
    if not facts.startswith("- "):
        return f"I remember nothing{f' about {about}' if about else ''}."
    return f"What I remember{f' about {about}' if about else ''}:\n{facts}"
