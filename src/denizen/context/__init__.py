"""What a model sees: context policies."""

from denizen.context.transcript import Transcript

__all__ = ["Transcript"]
