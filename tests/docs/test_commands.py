"""Every command in the documentation is one that there is, with options that it has."""

import re
import shlex
from pathlib import Path

import click
import pytest
from tests.docs.pages import ROOT, Block, all_blocks

from denizen.cli.main import cli

TARGETS = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
BLOCKS = all_blocks("console")


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_commands_are_understood(block: Block, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    commands = list(_commands(block.text))
    assert commands
    for program, arguments in commands:
        if program == "denizen":
            _parse(arguments)
        elif program == "make":
            assert arguments[0] in TARGETS


def _commands(text: str) -> list[tuple[str, list[str]]]:
    """The programs and arguments of lines that begin with `$`, on both sides of a pipe."""
    lines = [line.removeprefix("$ ") for line in text.replace("\\\n", " ").splitlines() if line.startswith("$ ")]
    words = [_words(line) for line in lines]
    return [(program, arguments) for each in words for program, *arguments in _split(each)]


def _words(line: str) -> list[str]:
    words = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
    words.whitespace_split = True
    words.commenters = "#"
    return list(words)


def _split(words: list[str]) -> list[list[str]]:
    commands: list[list[str]] = [[]]
    for word in words:
        if word in {"|", ";", "&&"}:
            commands.append([])
        elif "=" not in word or commands[-1]:
            commands[-1].append(word)
    return [command[: command.index(">")] if ">" in command else command for command in commands]


def _parse(arguments: list[str]) -> None:
    """Raises click.UsageError for what the command line doesn't understand."""
    command: click.Command = cli
    context: click.Context | None = None
    if not arguments:  # denizen by itself begins a chat
        return
    while isinstance(command, click.Group) and (arguments or not command.invoke_without_command):
        with click.Context(command, parent=context) as here:
            found, command_, arguments = command.resolve_command(here, arguments)
        assert command_ is not None, f"denizen has no command {found}"
        command, context = command_, here
    command.make_context(command.name, arguments, parent=context)
