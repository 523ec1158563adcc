"""Completion at the prompt: commands, their arguments, and files after `@`. Imports prompt_toolkit."""

import asyncio
import re
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from denizen.errors import DenizenError
from denizen.tools.files.walk import SkippedEntries, path_below, walk
from denizen.tools.files.workspace import Workspace
from denizen.worlds.commands import COMMANDS

MAX_FILES = 50_000
"""Files of a folder that are searched."""

MAX_SHOWN = 50

Words = Callable[[], Awaitable[Sequence[str]]]

_MENTION = re.compile(r'(?<!\S)@"?([^\s"]*)$')


class PromptCompleter(Completer):
    """Completes the commands of `usages`, their `arguments`, and after `@` some letters of a path below `folder`.

    Files that git ignores are left out.
    """

    def __init__(self, usages: Mapping[str, str], arguments: Mapping[str, Words], folder: Path) -> None:
        self._usages = usages
        self._arguments = arguments
        self._folder = folder
        self._paths: Sequence[str] = ()

    @staticmethod
    def applies(text: str) -> bool:
        """Whether completions are shown while the user types, without Tab."""
        return bool(_MENTION.search(text) or (text.startswith("/") and not re.search(r"\s", text)))

    def only_command(self, text: str) -> str:
        """The only command that begins like this; empty if there are several, or none."""
        fits = [each for each in self._usages if text[:1] == "/" and each.startswith(text[1:].lower())]
        return f"/{fits[0]}" if len(fits) == 1 else ""

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Nothing: `get_completions_async` yields the completions."""
        return ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Completions of the text before the cursor."""
        text = document.text_before_cursor
        name, blank, argument = text.removeprefix("/").partition(" ")
        if mention := _MENTION.search(text):
            if not (self._paths and mention[1]):  # with each new @ they are read again
                self._paths = await asyncio.to_thread(self._read_paths)
            found = await asyncio.to_thread(best_matches, mention[1], self._paths)
            for path in found:
                yield Completion(f'"{path}"' if " " in path else path, -len(mention[0]) + 1)
        elif text.startswith("/") and not blank:
            for each, usage in self._usages.items():
                if each.startswith(name.lower()):
                    yield Completion(f"/{each}", -len(text), usage, COMMANDS[each].does)
        elif text.startswith("/") and name in self._arguments:
            for word in await self._arguments[name]():
                if word.startswith(argument):
                    yield Completion(word, -len(argument))

    def _read_paths(self) -> list[str]:
        def paths() -> Iterator[str]:
            for entry in walk(Workspace(self._folder), ".", SkippedEntries(), threading.Event()):
                yield path_below(".", entry.names) + ("/" if entry.is_folder else "")

        try:
            return [*islice(paths(), MAX_FILES)]
        except DenizenError:
            return []


def best_matches(typed: str, paths: Iterable[str]) -> list[str]:
    """Paths with these characters in this order. Adjacent characters in the name come first, then those in the path."""
    wanted = typed.lower()
    scattered = re.compile("".join(f"[^{sign}]*{sign}" for sign in map(re.escape, wanted)))  # `.*` would try all ways

    def rank(path: str) -> tuple[int, int, int]:
        name = path.rstrip("/").rpartition("/")[2]
        kind = next((kind for kind, text in enumerate((name, path)) if wanted in text.lower()), 2)
        return kind, 0 if name.lower().startswith(wanted) else 1, len(path)

    return sorted((path for path in paths if scattered.match(path.lower())), key=rank)[:MAX_SHOWN]
