"""Tools, resources and prompts of MCP servers (https://modelcontextprotocol.io), of which this is a client."""

from denizen.tools.mcp.servers import McpServers

__all__ = ["McpServers"]
