"""The embedded model: rules that answer questions about the workspace by real tool calls."""

from denizen.models.offline.model import OfflineModel

__all__ = ["OfflineModel"]
