"""Identifies the sender of a message: an owner, or a person on several channels."""

from dataclasses import replace

import msgspec

from denizen.config import Config
from denizen.config.people import Person
from denizen.ports import InboundMessage
from denizen.sessions import SessionKey
from denizen.worlds.chat.ledger import outbound
from denizen.worlds.chat.settings import GatewaySettings

_CHANNEL = "people"
"""The channel in the session key that a person's direct chats share."""


class People:
    """The configured owners and people."""

    def __init__(self, config: Config) -> None:
        self._owners = frozenset(config.section("gateway", GatewaySettings).owners)
        persons = [Person.of(name, table) for name, table in config.people.items()]
        self._has_owner = bool(self._owners) or any(each.is_owner for each in persons)
        self._by_id = {f"{channel}:{sender}": each for each in persons for channel, sender in each.ids.items()}

    def is_owner(self, message: InboundMessage) -> bool:
        """Whether an owner wrote it, or a client with the token."""
        person = self._by_id.get(sender_of(message))
        names = {*_own_names(message), *([f"{message.channel}:{message.chat}"] if message.is_group else [])}
        return message.channel in outbound.POLLED or bool(person and person.is_owner) or bool(self._owners & names)

    def may_hear_heartbeats(self, message: InboundMessage) -> bool:
        """Whether the heartbeat may report to this chat: a direct chat, and an owner's if there are owners."""
        return not message.is_group and (self.is_owner(message) or not self._has_owner)

    def may_speak(self, message: InboundMessage) -> bool:
        """Whether the sender is a configured person or owner, or the message is from an owner's direct chat."""
        return sender_of(message) in self._by_id or bool(self._owners & _own_names(message))

    def identity(self, sender: str) -> str:
        """A string that identifies a sender (`channel:sender`), the same on all of a person's channels."""
        person = self._by_id.get(sender)
        return f"person {person.name}" if person else sender

    def in_own_session(self, message: InboundMessage) -> InboundMessage:
        """The message, moved to its person's shared session if they have one. Threads keep their own sessions."""
        person = self._by_id.get(sender_of(message))
        if person is None or person.session != "one" or message.is_group or message.thread:
            return message
        key = replace(SessionKey.parse(message.session_key), peer=person.name, channel=_CHANNEL, account="default")
        return msgspec.structs.replace(message, session_key=str(key))


def _own_names(message: InboundMessage) -> set[str]:
    """The sender, and a direct chat that the service knows to be theirs."""
    is_theirs = not message.is_group and message.vouched_for == "chat"
    return {sender_of(message), f"{message.channel}:{message.chat}"} if is_theirs else {sender_of(message)}


def sender_of(message: InboundMessage) -> str:
    """The sender as written in settings: `channel:sender`."""
    return f"{message.channel}:{message.sender}"
