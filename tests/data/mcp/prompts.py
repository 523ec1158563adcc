"""An MCP server with a prompt, made with the library that servers are made with."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("prompts")


@server.prompt()
def review(path: str, focus: str = "everything") -> str:
    """How to review a file."""
    return f"Review {path}, and look at {focus}."


server.run()
