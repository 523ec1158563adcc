"""How many tokens a message may cost, before a provider has counted them."""

from denizen.messages import Image, Message, Text, ToolCall

BYTES_PER_TOKEN = 3.5
IMAGE_TOKENS = 1600
MESSAGE_TOKENS = 8


def estimate_text(text: str) -> int:
    """Tokens of a text: one for every 3.5 bytes of UTF-8, on the safe side for prose and code."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return int(size / BYTES_PER_TOKEN) + 1


def estimate_message(message: Message) -> int:
    """Tokens of a message with its framing."""
    return MESSAGE_TOKENS + sum(map(_part, message.content))


def _part(part: object) -> int:
    match part:
        case Text(text):
            return estimate_text(text)
        case Image():
            return IMAGE_TOKENS
        case ToolCall(args=args):
            return estimate_text(str(args))
        case _:  # thoughts: few providers get those of earlier turns back
            return 0
