"""The agent for editors, over the Agent Client Protocol (https://agentclientprotocol.com)."""

from denizen.worlds.code.acp.server import Editors, serve

__all__ = ["Editors", "serve"]
