"""An MCP server that returns files: those of the folder that its argument names."""

import base64
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp_types import BlobResourceContents, EmbeddedResource, ResourceLink

server = MCPServer("documents")
FOLDER = Path(sys.argv[1])
TYPES = {".pdf": "application/pdf", ".png": "image/png", ".csv": "text/csv"}


@server.tool()
def whole(name: str) -> list[EmbeddedResource]:
    """A file as it is."""
    data = base64.b64encode((FOLDER / name).read_bytes()).decode()
    kind = TYPES.get(Path(name).suffix)
    contents = BlobResourceContents(uri=f"files:///{name}", mimeType=kind, blob=data)
    return [EmbeddedResource(type="resource", resource=contents)]


@server.tool()
def link(name: str) -> list[ResourceLink]:
    """Where a file is."""
    return [ResourceLink(type="resource_link", name=name, uri=f"files:///{name}", mimeType=TYPES[Path(name).suffix])]


@server.resource("files:///{name}", mime_type="application/pdf")
def file(name: str) -> bytes:
    """A document."""
    return (FOLDER / name).read_bytes()


server.run()
