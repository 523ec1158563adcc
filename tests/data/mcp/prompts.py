"""An MCP server with a prompt and instructions, made with the library that servers are made with."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("prompts", instructions="Name files from the root, as in /etc/hosts.")


@server.prompt()
def review(path: str, focus: str = "everything") -> str:
    """How to review a file."""
    return f"Review {path}, and look at {focus}."


server.run()
