"""Models: wire clients, fail-over, the catalogue, and the model that needs no key."""

from denizen.models.resolve import open_model

__all__ = ["open_model"]
