"""Runs prompts of the editor's user: a message with images and files, or a slash command."""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import acp
from acp.schema import AvailableCommand, AvailableCommandInput, UnstructuredCommandInput

from denizen.engine import state_of
from denizen.engine.compact import compact
from denizen.engine.resume import nothing_left, question_of, unfinished
from denizen.engine.undo import redo, undo
from denizen.entries import AnswerEntry
from denizen.errors import ConfigError, ToolRefused
from denizen.events import LlmStream, RunResult, TextDelta
from denizen.messages import Document, Image, Text, UserMessage, UserPart
from denizen.ports import TurnIO
from denizen.text.documents import attached_document
from denizen.worlds.code.acp.open_session import OpenSession
from denizen.worlds.commands import split_command, unknown_command, without_escape
from denizen.worlds.server_prompts import prompt_said
from denizen.worlds.world import AgentHandle, take_turn


async def run_prompt(opened: OpenSession, prompt: Sequence[Any], io: TurnIO) -> RunResult:
    """Run the prompt: a slash command, or a turn. A pending question of the agent takes the prompt as its answer.

    Raises RequestError for what isn't understood.
    """
    agent, session = opened.agent, opened.session
    parts = await asyncio.to_thread(_parts_of, prompt, agent.workspace)
    if len(parts) == 1 and isinstance(parts[0], Text):
        name, argument = split_command(parts[0].text)
        if name in COMMANDS:
            return await COMMANDS[name].run(opened, io, argument)
        if name:
            return _reply(io, unknown_command(name, COMMANDS))
        parts = [Text(without_escape(parts[0].text))]
    await state_of(agent.record, session).know_limits(agent.record.model, session.key)  # updates show the context used
    waiting = question_of(session.entries)
    text = "".join(part.text for part in parts if isinstance(part, Text))
    if waiting is None or waiting.name:  # whether a call may run is asked again, with its buttons
        try:
            asked = await prompt_said(agent, session, text)
        except ToolRefused as why:
            return _reply(io, str(why))
        return await take_turn(agent, session, UserMessage([*parts, *asked]), io)
    await session.append(AnswerEntry(call_id=waiting.call_id, allow=True, text=agent.record.redact(text)))
    return await take_turn(agent, session, None, io)


def _parts_of(prompt: Sequence[Any], workspace: Path) -> list[UserPart]:
    """The parts of the user's message; reading documents takes a while. Raises RequestError for unknown content."""
    parts: list[UserPart] = []
    for block in prompt:
        match block.type:
            case "text":
                parts.append(Text(block.text))
            case "image":
                parts.append(Image(block.mime_type, _data(block.data)))
            case "resource" if hasattr(block.resource, "blob"):
                path = _path_of(block.resource.uri, workspace)
                parts.append(_file(block.resource.mime_type or "", _data(block.resource.blob), path))
            case "resource_link":
                parts.append(Text(f"\n[{block.name}]({_path_of(block.uri, workspace)})"))
            case "resource" if hasattr(block.resource, "text"):
                path = _path_of(block.resource.uri, workspace)
                parts.append(Text(f'\n\n<file path="{path}">\n{block.resource.text}\n</file>'))
            case _:
                raise acp.RequestError.invalid_params({"prompt": f"{block.type} isn't supported"})
    return parts


def _data(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise acp.RequestError.invalid_params({"prompt": f"the data isn't base64: {error}"}) from error


def _file(media_type: str, data: bytes, path: str) -> Image | Document:
    if media_type.startswith("image/"):
        return Image(media_type, data, outside=path.startswith("/"))
    try:
        return attached_document(media_type, data, path)
    except ConfigError as error:
        raise acp.RequestError.invalid_params({"prompt": str(error)}) from error


def _path_of(uri: str, workspace: Path) -> str:
    """A file's path for tools, relative if it is in the workspace; other URIs unchanged."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return uri
    path = Path(unquote(parts.path))
    return str(path.relative_to(workspace) if path.is_relative_to(workspace) else path)


@dataclass(frozen=True, slots=True)
class EditorCommand:
    """A slash command: its description, and its function, which gets the text after the name."""

    does: str
    run: Callable[[OpenSession, TurnIO, str], Awaitable[RunResult]]


def available_commands(agent: AgentHandle) -> list[AvailableCommand]:
    """The slash commands, for the editor; after ours, the prompts of the MCP servers that were met."""
    prompts = agent.mcp.prompts() if agent.mcp else {}
    return [
        *(AvailableCommand(name=name, description=command.does) for name, command in COMMANDS.items()),
        *(
            AvailableCommand(
                name=name,
                description=prompt.description or name,
                input=AvailableCommandInput(UnstructuredCommandInput(hint=prompt.usage)) if prompt.usage else None,
            )
            for name, prompt in prompts.items()
        ),
    ]


async def _continue(opened: OpenSession, io: TurnIO, _: str) -> RunResult:
    if not unfinished(opened.session.entries):
        raise nothing_left(opened.session)
    return await take_turn(opened.agent, opened.session, None, io)


async def _compact(opened: OpenSession, io: TurnIO, _: str) -> RunResult:
    done = await compact(opened.agent.record, opened.session, io)
    return _reply(io, "A summary replaces the older messages." if done else "Nothing to compact.")


async def _undo(opened: OpenSession, io: TurnIO, how: str) -> RunResult:
    said = await undo(opened.agent.record, opened.session, force=how == "force")
    return _reply(io, f"Undone, with its file changes: {said}\n\n/redo restores them.")


async def _redo(opened: OpenSession, io: TurnIO, how: str) -> RunResult:
    return _reply(io, f"Redone: {await redo(opened.agent.record, opened.session, force=how == 'force')}")


def _reply(io: TurnIO, text: str) -> RunResult:
    io.emit(LlmStream(TextDelta(text)))
    return RunResult(reply=text)


COMMANDS = {
    "continue": EditorCommand("Resume an unfinished turn", _continue),
    "compact": EditorCommand("Replace older messages with a summary", _compact),
    "undo": EditorCommand("Undo the last turn and its file changes (/undo force: also over later changes)", _undo),
    "redo": EditorCommand("Undo the last /undo", _redo),
}
