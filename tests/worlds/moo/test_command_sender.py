"""Which lines of a command's output say that it failed: those of a DjangoMOO server, to the letter."""

import pytest

from denizen.worlds.moo.command_sender import is_error, is_failure
from denizen.worlds.moo.server_text import CommandOutput

FAILED = """\
PermissionError: #34 (Mason) is not allowed to 'write' on #31 (The Agency)
Huh? I don't understand that command.
Go where?
You can't go that way.
There is already an exit up from this room.
There is no 'brass lamp' here.
The verb "say" requires a direct object.
When you say, "lamp", do you mean , #67 (brass lamp) or #69 (oak desk)?
Unmatched quote in command.
The name 'Player' is already taken.
Specify a direction, e.g. '@dig north to The Foyer'.
An error occurred while executing the command.
I don't see 'nobody' here.
I don't know the parent '$lamp'.
Couldn't find brass lamp in tool chest.
Tinker (#35) is not a room.
#71 (brass lamp) cannot be moved.
The aether has no answer for 'child'.
No topic 'sheds' found."""
DONE = """\
Your message has been sent.
Created #62 (brass lamp) in #61 (The Library).
You can see the sea.
There is a lamp here.
You don't need a lamp here.
No door leads north."""


@pytest.mark.parametrize("line", FAILED.splitlines())
def test_a_refusal_is_an_error(line: str) -> None:
    assert is_error(line)


@pytest.mark.parametrize("line", DONE.splitlines())
def test_what_was_done_or_is_seen_is_none(line: str) -> None:
    assert not is_error(line)


def test_a_command_failed_if_any_line_says_so_or_it_is_incomplete() -> None:
    assert is_failure(CommandOutput("look", ["The Library", "Huh? I don't understand that command."]))
    assert is_failure(CommandOutput("look", ["The Library"], "no prompt came"))
    assert not is_failure(CommandOutput("look", ["The Library"]))
