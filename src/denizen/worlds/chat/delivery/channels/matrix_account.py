"""An account on a Matrix home server: its login, and the keys of its device."""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from denizen.config.files import write_private
from denizen.config.home import private_folder
from denizen.errors import ConfigError, DenizenError
from denizen.ports import ChannelRefused, ChannelSettings
from denizen.worlds.chat.delivery.channels.outgoing import CONNECT_RETRY_S
from denizen.worlds.chat.delivery.state_files import read_state, write_state

LOGGED_OUT = {"M_MISSING_TOKEN", "M_UNKNOWN_TOKEN"}
"""The codes of a token that isn't valid, or not any more."""
_REFUSED = {*LOGGED_OUT, "M_FORBIDDEN", "M_USER_DEACTIVATED"}
MatrixClient = Any
"""nio.AsyncClient, whose decorators hide its types."""


class MatrixSettings(ChannelSettings, frozen=True, kw_only=True):
    """A Matrix account, with its password or an access token."""

    homeserver: str
    """URL of the home server: `https://matrix.org`."""
    user: str
    """The account's id: `@assistant:matrix.org`."""
    password: str = ""
    """Its password; Denizen logs in once, as its own device."""
    access_token: str = ""
    """An access token of the account, instead of its password."""


class MatrixLogin(msgspec.Struct):
    """The device that a password login created."""

    device_id: str = ""
    access_token: str = ""


class MatrixRefusal(DenizenError):
    """An error response from the home server."""

    def __init__(self, answer: Any) -> None:
        super().__init__(f"{answer.message} ({answer.status_code or 'no code'})")
        self.code = answer.status_code
        self.is_unclear = answer.transport_response is None or answer.transport_response.status >= 500
        self.retry_after_s = (answer.retry_after_ms or 0) / 1000 or CONNECT_RETRY_S


class MatrixAccount:
    """An account that is logged in when it is first used, as a device whose keys are in the folder."""

    def __init__(self, settings: MatrixSettings, folder: Path) -> None:
        self.has_synced = False
        self._settings = settings
        self._folder = folder
        self._client: MatrixClient | None = None
        self._users = 0
        self._logging_in = asyncio.Lock()
        self._sharing = asyncio.Lock()

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[MatrixClient]:
        """The client, logged in; its connections are closed when nobody uses it. Raises ChannelRefused, OSError."""
        self._users += 1
        try:
            async with self._logging_in:
                self._client = self._client or await self._logged_in()
            yield self._client
        finally:
            self._users -= 1
            if self._client and not self._users:
                await self._client.close()

    async def end_login(self, refusal: MatrixRefusal) -> None:
        """Log in anew the next time. Raises ChannelRefused if that needs a password, and there is none."""
        client, self._client = self._client, None
        if client:
            await client.close()
        if not self._settings.password:
            raise _refused(self._settings, refusal) from refusal

    async def _logged_in(self) -> MatrixClient:
        private_folder(self._folder)
        key, path = self._folder / "pickle.key", self._folder / "login.json"
        if not key.exists():
            write_private(key, secrets.token_hex(32).encode())
        login, self.has_synced = read_state(path, MatrixLogin) or MatrixLogin(), False
        client = _new_client(self._settings, self._folder, key.read_text())
        try:
            await _log_in(client, self._settings, login)
            client.restore_login(client.user_id, client.device_id, client.access_token)
        except BaseException:
            await client.close()
            raise
        if not self._settings.access_token and client.access_token != login.access_token:
            write_state(path, MatrixLogin(client.device_id, client.access_token))
        return client

    async def share_keys(self, client: MatrixClient, room: Any) -> None:
        """Give the devices in an encrypted room the key of what is sent next. Raises MatrixRefusal."""
        async with self._sharing:
            if not room.members_synced:
                checked(await client.joined_members(room.room_id))
            if client.should_query_keys:
                checked(await client.keys_query())
            if client.olm.should_share_group_session(room.room_id):
                try:
                    checked(await client.share_group_session(room.room_id, ignore_unverified_devices=True))
                finally:
                    client.sharing_session.pop(
                        room.room_id, None
                    )  # the library never removes it if claiming keys fails


def checked(answer: Any) -> Any:
    """The answer. Raises MatrixRefusal for an error."""
    import nio

    if isinstance(answer, nio.ErrorResponse):
        raise MatrixRefusal(answer)
    return answer


async def keep_keys(client: MatrixClient) -> None:
    """Answer other devices, upload our keys, and update our list of theirs."""
    await client.send_to_device_messages()
    if client.should_upload_keys:
        await client.keys_upload()
    if client.should_query_keys:
        await client.keys_query()
    if client.should_claim_keys:
        await client.keys_claim(client.get_users_for_key_claiming())


def _new_client(settings: MatrixSettings, folder: Path | None, pickle_key: str) -> MatrixClient:
    """A client without its own waits and retries; without a folder it can't decrypt."""
    import nio

    logging.getLogger("nio").setLevel(logging.WARNING)  # it has a line for each event
    config = nio.AsyncClientConfig(
        encryption_enabled=folder is not None, pickle_key=pickle_key, max_limit_exceeded=0, max_timeouts=0
    )
    return nio.AsyncClient(settings.homeserver.rstrip("/"), settings.user, store_path=str(folder or ""), config=config)


async def _log_in(client: MatrixClient, settings: MatrixSettings, login: MatrixLogin) -> None:
    """Log in with the existing token, otherwise with the password. Raises ChannelRefused, ConfigError, OSError."""
    import aiohttp

    if not settings.password and not settings.access_token:
        raise ConfigError("The Matrix channel needs a `password` or an `access_token`.")
    client.access_token = settings.access_token or login.access_token
    try:
        try:
            if client.access_token:
                checked(await client.whoami())
                return
        except MatrixRefusal as refusal:
            if not settings.password or refusal.code not in _REFUSED:
                raise
        client.access_token, client.device_id = "", login.device_id
        checked(await client.login(settings.password, "Denizen"))
    except MatrixRefusal as refusal:
        raise (_refused(settings, refusal) if refusal.code in _REFUSED else refusal) from refusal
    except aiohttp.ClientError as error:
        raise ConnectionError(f"{settings.homeserver} can't be reached: {error}") from error


def _refused(settings: MatrixSettings, refusal: MatrixRefusal) -> ChannelRefused:
    return ChannelRefused(
        f"{settings.homeserver} refuses {settings.user}: {refusal}. Check the channel's user, password or access token."
    )


async def check_account(settings: MatrixSettings) -> str:
    """Log in; the account's id. Raises ChannelRefused, ConfigError, OSError."""
    client = _new_client(settings, None, "")
    try:
        await _log_in(client, settings, MatrixLogin())
        if not settings.access_token:
            await client.logout()
        return client.user_id
    finally:
        await client.close()
