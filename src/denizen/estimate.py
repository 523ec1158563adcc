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
    tokens = MESSAGE_TOKENS
    for part in message.content:
        match part:
            case Text(text):
                tokens += estimate_text(text)
            case Image():
                tokens += IMAGE_TOKENS
            case ToolCall(args=args):
                tokens += estimate_text(str(args))
            case _:  # thoughts: few providers get those of earlier turns back
                pass
    return tokens
