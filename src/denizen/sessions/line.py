"""Makes the line of an entry."""

import msgspec

from denizen.config.redact import Redactor, map_text, whole_characters
from denizen.entries import AnyEntry
from denizen.errors import SessionError
from denizen.sessions.load import ENTRY

_ENCODER = msgspec.json.Encoder(enc_hook=repr)  # a tool's details may hold anything


def encode(entry: AnyEntry, redactor: Redactor) -> tuple[bytes, AnyEntry]:
    """The line, without secrets, and the entry that it says: what loading it would give.

    Raises SessionError for an entry that JSON can't say.
    """
    try:
        return _encode(entry, redactor)
    except (TypeError, ValueError, RecursionError) as error:
        kind = entry.__struct_config__.tag
        raise SessionError(f"The entry {kind!r} can't be written as JSON: {error}. It is not recorded.") from error


def _encode(entry: AnyEntry, redactor: Redactor) -> tuple[bytes, AnyEntry]:
    try:
        line = _ENCODER.encode(entry)
    except UnicodeEncodeError:  # half a character, as in a file name that isn't UTF-8
        entry = map_text(entry, whole_characters)
        line = _ENCODER.encode(entry)
    if redactor.found_in(line):
        entry = redactor.value(ENTRY.decode(line))
        line = _ENCODER.encode(entry)
    return line + b"\n", entry
