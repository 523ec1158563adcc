"""What to do about failures that their own words, or their status, tell apart.

In each remedy `{provider}` stands for the name of the provider.
"""

import re
from collections.abc import Mapping
from typing import Final


def remedy(told: str) -> str | None:
    """What to do about a failure in these words; None where they tell nothing."""
    return next((todo for pattern, todo in _REMEDIES if pattern.search(told)), None)


def setting_named(told: str) -> str:
    """The setting of `[agent]` that a refusal names; empty: none."""
    found = _SETTING.search(told)
    return (found[1] or found[2]).lower().replace("completion_", "") if found else ""


def _on(words: str, todo: str) -> tuple[re.Pattern[str], str]:
    return re.compile(words, re.IGNORECASE), todo


OF_STATUS: Final[Mapping[int, str]] = {
    407: "write the user and password of the proxy into its address, in `proxy` or HTTPS_PROXY: "
    "http://me:password@proxy.example:3128",
    410: "take another model: `denizen models {provider}`",
    511: "log in to this network first: it shows any browser where",
}
"""What to do about a status that says it all."""

_REMEDIES: Final = (
    _on(
        r"(not|n.t) support (the )?(tool|function)|no endpoints found that support tool",
        'take a model that calls tools, or let it act by commands in its text: agent.actions = "shell"',
    ),
    _on(
        r"(not|n.t|only) (be )?support.{0,30}\b(image|vision)|\b(image|vision).{0,40}(not|n.t|only) (be )?support"
        r"|endpoints found that support image|variant .image_url|not a multimodal|at most 0 image|required for image",
        "take a model that sees pictures, or begin a new session without them",
    ),
    _on(
        r"\bimages?\b.{0,60}\b(exceed|too (large|big))|could not process image",
        "begin a new session with a smaller picture",
    ),
    _on(r"certificate verify failed", "if you trust that server, name the file with its certificate in SSL_CERT_FILE"),
    _on(r"does it speak https\?", "if not, write http:// in providers.{provider}.base_url"),
    _on(
        r"its answer is compressed",
        "something on the way does it: see that providers.{provider}.base_url leads to the provider itself",
    ),
    _on(r"^the connection failed: the proxy", "look at `proxy` in denizen.toml and HTTPS_PROXY in the environment"),
    _on(r"HTTP request (was sent )?to (an )?HTTPS", "write https:// in providers.{provider}.base_url"),
    _on(
        r"is not a (chat completion|message) in",
        "see that providers.{provider}.base_url leads to a model server, and providers.{provider}.api is its format",
    ),
    _on(
        r"\b(country|region|territory|location)\b.{0,40}(not|n.t|un) ?(available|supported)",
        "take a provider that serves where you are",
    ),
    _on(
        r"\b(input|prompt|content|request|message)s?\b.{0,60}\bflagged\b|requires moderation|inappropriate content"
        r"|content (management )?policy|content filter|safety system|content exists risk",
        "say it otherwise, or take another model",
    ),
    _on(r"AWS isn't set up: .*region", "set AWS_REGION"),
    _on(r"AWS isn't set up", "set AWS_BEARER_TOKEN_BEDROCK, or the credentials of AWS's own tools: `aws configure`"),
)
_SETTING: Final = re.compile(
    r"\b(max_(?:completion_)?tokens|temperature|top_[pk]|(?:frequency|presence)_penalty)\b|['\"`](seed|stop)['\"`]",
    re.IGNORECASE,
)
