"""What servers say of their tools, kept as the user accepted it: a description can tell the model what to do."""

import hashlib
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from denizen.config.files import read_file, write_private
from denizen.config.home import private_folder
from denizen.config.settings import McpServer
from denizen.errors import ConfigError

MOST_BYTES = 16_000_000
"""Bytes of one message of a server, and of what is kept of one."""


def visible(text: str, most: int) -> str:
    """The text without characters that nobody sees, and a model reads; cut to so many."""
    text = "".join(each for each in text if each in "\n\t" or unicodedata.category(each)[0] != "C").strip()
    return text if len(text) <= most else f"{text[: most - 1]}…"


class KnownTool(msgspec.Struct, frozen=True):
    """A tool as its server describes it: `schema` is that of its arguments, `annotations` are hints."""

    name: str
    description: str
    schema: dict[str, Any]
    annotations: dict[str, Any] = {}

    @property
    def only_reads(self) -> bool:
        """Whether the server says that it changes nothing."""
        return self.annotations.get("readOnlyHint") is True


class KnownPrompt(msgspec.Struct, frozen=True):
    """A prompt as its server describes it; of its arguments, in order, whether they must be given."""

    name: str
    description: str = ""
    arguments: dict[str, bool] = {}

    @property
    def usage(self) -> str:
        """How the arguments are written: `path [focus]`."""
        return " ".join(name if required else f"[{name}]" for name, required in self.arguments.items())


class Listing(msgspec.Struct, frozen=True):
    """What a server has; `instructions` are its own words on how it is used.

    Resources and prompts, of which the model reads what it asks for, are as they were listed last.
    """

    tools: Sequence[KnownTool] = ()
    instructions: str = ""
    resources: bool = False
    prompts: Sequence[KnownPrompt] = ()

    def prompt(self, name: str) -> KnownPrompt | None:
        """The prompt of that name."""
        return next((prompt for prompt in self.prompts if prompt.name == name), None)

    def tool(self, name: str) -> KnownTool | None:
        """The tool of that name."""
        return next((tool for tool in self.tools if tool.name == name), None)

    @property
    def digest(self) -> str:
        """The SHA-256 of what must be accepted, in whatever order it was listed."""
        tools = sorted(self.tools, key=lambda tool: tool.name)
        data = msgspec.json.encode([self.instructions, tools], order="deterministic")
        return hashlib.sha256(data).hexdigest()


class Pin(msgspec.Struct, frozen=True):
    """What was accepted, with its `digest`, and what the server says now where that is something else."""

    digest: str
    accepted: Listing
    found: Listing | None = None

    @property
    def changed(self) -> list[str]:
        """The names of what is described differently now, is new or is gone."""
        words = ["its instructions"] if self.found and self.found.instructions != self.accepted.instructions else []
        return [*words, *self.changes()]

    def changes(self) -> dict[str, tuple[KnownTool | None, KnownTool | None]]:
        """The tools that are described differently now, are new or are gone, as accepted and as found."""
        if self.found is None:
            return {}
        names = dict.fromkeys(tool.name for tool in (*self.accepted.tools, *self.found.tools))
        both = {name: (self.accepted.tool(name), self.found.tool(name)) for name in names}
        return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


class Pins:
    """The pins of the servers, a file for each in the home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "mcp"

    def read(self, name: str, server: McpServer) -> Pin | None:
        """The pin of a server; None: it was never asked. Raises ConfigError for a damaged one."""
        path = self._path(name, server)
        try:
            data = read_file(path, MOST_BYTES)
            pin = None if data is None else msgspec.json.decode(data, type=Pin)
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigError(f"{path} can't be read: {error}. Remove it to accept the server anew.") from error
        if pin and pin.digest != pin.accepted.digest:
            raise ConfigError(f"{path} was changed. Remove it to accept the server anew.")
        return pin

    def accept(self, name: str, server: McpServer, listing: Listing) -> Pin:
        """Pin what a server has. Raises ConfigError when it can't be written."""
        return self._write(name, server, Pin(listing.digest, listing))

    def compare(self, name: str, server: McpServer, listing: Listing) -> Pin:
        """The pin of a server that has this now: made at its first use; later, it says what differs."""
        pin = self.read(name, server)
        if pin is None:
            return self.accept(name, server, listing)
        found = None if listing.digest == pin.digest else listing
        latest = msgspec.structs.replace(pin.accepted, resources=listing.resources, prompts=listing.prompts)
        now = Pin(pin.digest, latest, found)
        return pin if pin == now else self._write(name, server, now)

    def _write(self, name: str, server: McpServer, pin: Pin) -> Pin:
        private_folder(self._folder)
        write_private(self._path(name, server), msgspec.json.encode(pin))
        return pin

    def _path(self, name: str, server: McpServer) -> Path:
        """Another program or address under the same name is another server."""
        what = msgspec.json.encode([name, server.command, server.args, server.cwd, server.url])
        return self._folder / f"{hashlib.sha256(what).hexdigest()[:24]}.json"
