"""People who write on several channels: the tables `[people.NAME]`."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, cast

from denizen.errors import ConfigError

_SESSIONS = ("one", "per channel")


class Person(NamedTuple):
    """A person and their sender ids, by channel. `session`: one for all their direct chats, or one per channel."""

    name: str
    ids: Mapping[str, str]
    is_owner: bool = False
    session: Literal["one", "per channel"] = "per channel"

    @classmethod
    def of(cls, name: str, table: Mapping[str, str | bool]) -> "Person":
        """Read a person from a table. Raises ConfigError."""
        ids = dict(table)
        is_owner, session = ids.pop("owner", False), ids.pop("session", "per channel")
        if not isinstance(is_owner, bool):
            raise ConfigError(f"people.{name}.owner must be true or false.")
        if session not in _SESSIONS:
            raise ConfigError(f'people.{name}.session must be "one" or "per channel", not {session!r}.')
        for channel, sender in ids.items():
            if not isinstance(sender, str) or not sender.strip():
                raise ConfigError(f"people.{name}.{channel} must be the person's id on the channel, a string.")
        return cls(name, cast("Mapping[str, str]", ids), is_owner, cast("Literal['one', 'per channel']", session))
