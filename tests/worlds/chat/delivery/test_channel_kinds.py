"""Configured channels: settings are validated, and only one gateway uses an account."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated

import msgspec
import pytest

from denizen.config import Config
from denizen.config.load import Loaded, load
from denizen.config.redact import Redactor
from denizen.errors import ConfigError
from denizen.ports import Channel, ChannelHome, ChannelKind, ChannelRefused, ChannelSettings, OutboundMessage
from denizen.testing import FakeClock, MemoryChannel
from denizen.testing.conformance_channel import Inbox
from denizen.worlds.chat.delivery.channel_kinds import open_channels


class ParrotSettings(ChannelSettings, frozen=True, kw_only=True):
    """The settings of a parrot."""

    token: Annotated[str, msgspec.Meta(pattern="^[a-z]")]
    """The name that it answers to."""


def _connect(settings: ParrotSettings, home: ChannelHome) -> Channel:
    if settings.token == "library":
        raise ModuleNotFoundError("No module named 'parrots'")
    if settings.token == "broken":
        raise OSError("no perch")
    (home.folder / "perch").touch()
    return MemoryChannel(home.name)


async def _check(settings: ParrotSettings) -> str:
    return "polly"


def _account(settings: ParrotSettings) -> str:
    return f"@{settings.token}"


KIND = ChannelKind(ParrotSettings, _connect, _check, _account, "Buy one.")


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kinds of channels are installed; one of them can't be loaded."""
    kinds = [
        EntryPoint("parrot", f"{__name__}:KIND", "denizen.channels"),
        EntryPoint("mute", "nowhere:KIND", "denizen.channels"),
    ]

    def entry_points(group: str) -> Sequence[EntryPoint]:
        return kinds if group == "denizen.channels" else []

    monkeypatch.setattr("denizen.config.plugins.entry_points", entry_points)


def read(home: Path, text: str, **environ: str) -> Loaded:
    (home / "denizen.toml").write_text(text)
    return load(home=home, environ={"HOME": str(home), **environ}, cwd=home)


def config(home: Path, text: str) -> Config:
    return read(home, text).config


async def why(channel: Channel) -> str:
    """The reason why a channel isn't open; its messages wait."""
    assert (await channel.send(OutboundMessage(channel.name, "den", "hello"))).state == "later"
    with pytest.raises(ChannelRefused) as refused:
        await channel.receive(Inbox(refuses=True).accept)
    return str(refused.value)


def test_channel_is_read_into_the_settings_of_its_kind(home: Path) -> None:
    found = config(home, '[channels.my-bird]\ntype = "parrot"\ntoken = "x"\nallow = ["ann"]').channels
    assert found == {"my-bird": ParrotSettings(type="parrot", token="x", allow=["ann"])}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[channels.parrot]\ntoken = "x"\ntokens = 1', "toml:3: channels.parrot.tokens isn't a setting. Did you mean"),
        ("[channels.parrot]", "channels.parrot lacks `token`"),
        ('[channels.parrot]\ntoken = "7"', "channels.parrot.token: expected a string, found one of another form"),
        ('[channels.parrot]\ntoken = "${GONE}"', "needs the variable GONE"),
        ("[channels]\nparrot = 1", "channels.parrot: expected a table"),
        ("[channels.owl]", "toml:1: channels.owl: unknown kind of channel 'owl'; available: mute, parrot."),
        ('[channels."a/b"]\ntype = "parrot"', "a channel's name has"),
    ],
)
def test_errors_in_a_channel_say_what_to_write(home: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(home, text)
    assert words in str(error.value)


def test_secrets_of_a_channel_are_redacted(home: Path) -> None:
    loaded = read(home, '[channels.parrot]\ntoken = "${BIRD}"', BIRD="pretty-polly-9")
    redactor = Redactor.from_environ(loaded.environ, loaded.secrets)
    assert "polly" not in redactor.text("It says pretty-polly-9.")


def test_secret_in_the_file_is_noticed(home: Path) -> None:
    assert "channels.parrot.token holds a key" in read(home, '[channels.parrot]\ntoken = "polly"').notices[0]


def test_each_channel_has_a_private_folder(home: Path) -> None:
    given = config(home, '[channels.parrot]\ntoken = "x"')
    with open_channels(given, home, home / "locks", FakeClock()) as channels:
        assert [*channels] == ["parrot"]
    assert (home / "channels/parrot/perch").exists()
    assert (home / "channels/parrot").stat().st_mode & 0o777 == 0o700


async def test_broken_channel_does_not_stop_the_others(home: Path) -> None:
    given = config(
        home,
        '[channels.a]\ntype = "parrot"\ntoken = "broken"\n[channels.b]\ntype = "parrot"\ntoken = "library"\n'
        '[channels.mute]\n[channels.http]\ntype = "parrot"\ntoken = "y"\n[channels.z]\ntype = "parrot"\ntoken = "x"',
    )
    with open_channels(given, home, home / "locks", FakeClock()) as channels:
        assert isinstance(channels["z"], MemoryChannel)
        assert await why(channels["a"]) == "OSError: no perch"
        assert "packages that aren't installed" in await why(channels["b"])
        assert "can't be loaded" in await why(channels["mute"])
        assert "can't have the name http" in await why(channels["http"])


async def test_account_is_used_by_one_gateway_at_a_time(home: Path, tmp_path: Path) -> None:
    given = config(home, '[channels.parrot]\ntoken = "x"')

    def opened(folder: Path) -> AbstractContextManager[dict[str, Channel]]:
        return open_channels(given, folder, home / "locks", FakeClock())

    with opened(home), opened(tmp_path / "other") as second:
        assert "parrot account @x is in use by another gateway" in await why(second["parrot"])
    with opened(tmp_path / "other") as second:
        assert isinstance(second["parrot"], MemoryChannel)


async def test_worker_opens_no_channels(home: Path) -> None:
    given = config(home, '[channels.parrot]\ntoken = "x"')
    with open_channels(given, home, None, FakeClock()) as channels:
        assert await why(channels["parrot"]) == "Only the gateway sends."
