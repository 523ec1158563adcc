"""How many tokens a message may cost, before a provider has counted them."""

from denizen.messages import Document, Image, Message, Text, ToolCall
from denizen.text.documents import PDF, text_in

BYTES_PER_TOKEN = 3.5
IMAGE_TOKENS = 1600
MESSAGE_TOKENS = 8


def estimate_text(text: str) -> int:
    """Tokens of a text: one for every 3.5 bytes of UTF-8, on the safe side for prose and code."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return int(size / BYTES_PER_TOKEN) + 1


def estimate_document(document: Document) -> int:
    """Tokens of a document: its text, and of a PDF each page as a picture too, which most providers look at."""
    pictures = max(document.pages, 1) if document.media_type == PDF else 0
    return estimate_text(text_in(document)) + pictures * IMAGE_TOKENS


def estimate_message(message: Message) -> int:
    """Tokens of a message with its framing."""
    tokens = MESSAGE_TOKENS
    for part in message.content:
        match part:
            case Text(text):
                tokens += estimate_text(text)
            case Image():
                tokens += IMAGE_TOKENS
            case Document():
                tokens += estimate_document(part)
            case ToolCall(args=args):
                tokens += estimate_text(str(args))
    return tokens
