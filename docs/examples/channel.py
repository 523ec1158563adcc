"""A channel made of files: `in/ann.17` is a message from ann, and each reply to her is written to `out/ann.…`."""

from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from denizen.config.files import write_private
from denizen.errors import ConfigError
from denizen.ports import Accept, InboundMessage, OutboundMessage
from denizen.ports.channel import ChannelHome, ChannelKind, ChannelLimits, ChannelSettings, Sent
from denizen.sessions import SessionKey


class FilesSettings(ChannelSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    folder: str
    """Contains the folders `in` and `out`."""


class FilesChannel:
    limits = ChannelLimits(length=100_000, reconciles=True)

    def __init__(self, settings: FilesSettings, home: ChannelHome) -> None:
        self.name, self._clock, self._folder = home.name, home.clock, Path(settings.folder)

    async def receive(self, accept: Accept) -> None:
        while True:
            for file in sorted((self._folder / "in").glob("*.*")):
                chat, text = file.stem, file.read_text()
                key = str(SessionKey(chat, channel=self.name))
                await accept(InboundMessage(self.name, chat, chat, text, key, id=file.name))
                file.unlink()  # after an error above, the message is read again
            await self._clock.sleep(1)

    async def send(self, message: OutboundMessage) -> Sent:
        if message.media or self.limits.measure(message.content) > self.limits.length:
            return Sent("failed", f"A file holds a text of at most {self.limits.length:,} characters.")
        name = f"{quote(message.chat, safe='')}.{sha256(message.id.encode()).hexdigest()[:16]}"
        write_private(self._folder / "out" / name, message.content.encode())  # sent again, it is the same file
        return Sent(native_id=name)


async def check(settings: FilesSettings) -> str:
    if missing := [name for name in ("in", "out") if not Path(settings.folder, name).is_dir()]:
        raise ConfigError(f"{settings.folder} has no folder {missing[0]!r}. Create it.")
    return f"the folder {settings.folder}"


def account(settings: FilesSettings) -> str:
    return settings.folder


STEPS = "Create a folder that contains the folders `in` and `out`. Move each message into `in` under a new name."
KIND = ChannelKind(FilesSettings, FilesChannel, check, account, STEPS)
