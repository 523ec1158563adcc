"""What the user says in an editor: words, images, files."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import acp

from denizen.messages import Image, Text, UserPart


def parts_of(prompt: Sequence[Any], workspace: Path) -> list[UserPart]:
    """What the user says, in parts. Raises RequestError for what isn't understood."""
    parts: list[UserPart] = []
    for block in prompt:
        match block.type:
            case "text":
                parts.append(Text(block.text))
            case "image":
                parts.append(_image(block))
            case "resource_link":
                parts.append(Text(f"\n[{block.name}]({_place(block.uri, workspace)})"))
            case "resource" if hasattr(block.resource, "text"):
                path = _place(block.resource.uri, workspace)
                parts.append(Text(f'\n\n<file path="{path}">\n{block.resource.text}\n</file>'))
            case _:
                raise acp.RequestError.invalid_params({"prompt": f"{block.type} isn't understood"})
    return parts


def _image(block: Any) -> Image:
    try:
        return Image(block.mime_type, base64.b64decode(block.data, validate=True))
    except ValueError as error:
        raise acp.RequestError.invalid_params({"prompt": f"the image can't be read: {error}"}) from error


def _place(uri: str, workspace: Path) -> str:
    """A file's path as tools take it, from the workspace on where it is in there; another URI as it is."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return uri
    path = Path(unquote(parts.path))
    return str(path.relative_to(workspace) if path.is_relative_to(workspace) else path)
