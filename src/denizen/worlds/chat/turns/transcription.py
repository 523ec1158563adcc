"""Voice messages become text, by an endpoint of OpenAI's form, `POST /audio/transcriptions`."""

import asyncio
import logging
import mimetypes
from functools import partial
from pathlib import Path

import aiohttp
import msgspec

from denizen.config import Config
from denizen.ports import Budget, ChannelSettings, InboundMessage, OutboundMessage
from denizen.worlds.chat.delivery.outbox import Outbox
from denizen.worlds.chat.ledger import ledger
from denizen.worlds.chat.ledger.reply_options import ReplyOptions, has_transcript, with_transcript
from denizen.worlds.chat.settings import GatewaySettings

TIMEOUT_S = 120.0
_SUFFIXES = {".ogg", ".oga", ".opus", ".mp3", ".m4a", ".wav", ".webm"}
_NO_ENDPOINT = "I have the file of your voice message, but not its words: that needs `[gateway.transcription]`."
_FAILED = "Your voice message couldn't be transcribed: I have its file, but not its words."
_log = logging.getLogger(__name__)


class _Usage(msgspec.Struct, frozen=True):
    seconds: float = 0.0


class _Transcript(msgspec.Struct, frozen=True):
    text: str
    usage: _Usage = _Usage()


class Transcription:
    """Transcribes the voice messages of channels whose `voice` is set.

    It happens when a message's turn begins: its chat waits for the text, and the channel's other chats don't.
    """

    def __init__(self, config: Config, outbox: Outbox) -> None:
        self._channels = config.channels
        self._settings = config.section("gateway", GatewaySettings).transcription
        self._outbox = outbox

    async def transcribed(self, message: InboundMessage, budget: Budget) -> InboundMessage:
        """The message with the text of its voice messages, which the ledger keeps for the next attempt.

        The budget is charged. The sender is notified if there is no endpoint, or it fails. Raises LedgerError.
        """
        channel = self._channels.get(message.channel)
        recordings = [Path(each) for each in message.media if _is_audio(each)]
        if not recordings or has_transcript(message) or not (isinstance(channel, ChannelSettings) and channel.voice):
            return message
        if not self._settings.base_url:
            await self._notify(message, _NO_ENDPOINT)
            return message
        try:
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(TIMEOUT_S)) as http:
                transcripts = [await self._transcript(http, path) for path in recordings]
        except (aiohttp.ClientError, msgspec.MsgspecError, OSError, ValueError) as error:  # a timeout is an OSError
            why = str(error) or type(error).__name__  # its repr has the key
            _log.error("A voice message of %s wasn't transcribed: %s", message.channel, why)
            await self._notify(message, _FAILED)
            return message
        message = with_transcript(message, [each.text.strip() for each in transcripts])
        await self._outbox.database.run(partial(ledger.replace_message, message=message), message.session_key)
        cost = sum(each.usage.seconds for each in transcripts) / 60 * self._settings.usd_per_minute
        if cost:
            await budget.charge(message.session_key, cost, self._settings.model)
        return message

    async def _transcript(self, http: aiohttp.ClientSession, path: Path) -> _Transcript:
        key = self._settings.api_key
        form = aiohttp.FormData({"model": self._settings.model})
        form.add_field("file", await asyncio.to_thread(path.read_bytes), filename=path.name)
        async with http.post(
            f"{self._settings.base_url.rstrip('/')}/audio/transcriptions",
            data=form,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            raise_for_status=True,
        ) as response:
            return msgspec.json.decode(await response.read(), type=_Transcript)

    async def _notify(self, message: InboundMessage, text: str) -> None:
        if ReplyOptions.of(message).send_response:
            notice = OutboundMessage(message.channel, message.chat, text, message.session_key, id=f"{message.id}:voice")
            await self._outbox.put(notice)


def _is_audio(path: str) -> bool:
    guessed, _ = mimetypes.guess_type(path)
    return Path(path).suffix.lower() in _SUFFIXES or (guessed or "").startswith("audio/")
