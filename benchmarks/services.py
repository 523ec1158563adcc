"""The chat services that a gateway's channels connect to: the servers of the tests, in a thread of the runner's.

What they need is installed for development alone.
"""

import asyncio
import base64
import ssl
import threading
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from queue import Queue

import aiohttp
import msgspec
from aiohttp import web

from benchmarks.contenders import Broken
from denizen.worlds.chat.delivery.channels.webhook import WebhookMessage, WebhookReply, key_of, signature

SECRET = "whsec_" + base64.b64encode(bytes(24)).decode()
SENDER = "bench"
PATIENCE = 60  # seconds for one reply, or for all services to start


@contextmanager
def services(folder: Path) -> Generator[Mapping[str, str]]:
    """The table of the configuration for each kind of channel, by its name. Raises `Broken`."""
    tables, over = Queue[Mapping[str, str] | BaseException](), threading.Event()

    async def serve() -> None:
        try:
            async with _services(folder) as found:
                tables.put(found)
                await asyncio.to_thread(over.wait)
        except BaseException as error:  # the top of a thread: the runner must hear of it
            tables.put(error)
            raise

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True, name="services")
    thread.start()
    try:
        if isinstance(found := tables.get(timeout=2 * PATIENCE), BaseException):
            raise Broken(f"the services: {found!r}")
        yield found
    finally:
        over.set()
        thread.join()


@asynccontextmanager
async def _services(folder: Path) -> AsyncGenerator[Mapping[str, str]]:
    from tests.worlds.chat.delivery.channels.servers import irc, slack, synapse_server, telegram, xmpp
    from tests.worlds.chat.delivery.channels.servers.program import self_signed
    from tests.worlds.chat.delivery.channels.test_email import AGENT, Mailbox, MailService
    from tests.worlds.moo.djangomoo import free_port

    folder.chmod(0o755)  # the mail server isn't run by who owns it
    certificate, key = self_signed(folder)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    for each in ("irc", "xmpp", "matrix"):
        (folder / each).mkdir()
    async with telegram.TelegramServer().serving() as bots, slack.SlackServer().serving() as workspace:
        with irc.ngircd(folder / "irc") as chats, xmpp.prosody(folder / "xmpp") as jabber:
            matrix = synapse_server.running_server(folder / "matrix")
            mailbox = Mailbox(folder)
            smtp = MailService(mailbox, tls).smtp
            smtp.start()
            try:
                async with aiohttp.ClientSession() as http:
                    account = await synapse_server.MatrixUser.register(matrix, http, SENDER)
                tables = {
                    "telegram": {"token": telegram.TOKEN, "base_url": bots.url},
                    "slack": {
                        "bot_token": slack.BOT_TOKEN,
                        "app_token": slack.APP_TOKEN,
                        "base_url": f"{workspace.url}/api/",
                    },
                    "discord": {"token": "none"},
                    "matrix": {"homeserver": matrix.url, "user": account.id, "access_token": account.token},
                    "irc": {"server": "127.0.0.1", "port": chats.port, "tls": False},
                    "email": {
                        "address": AGENT,
                        "password": "secret",
                        "imap": f"127.0.0.1:{mailbox.port}",
                        "smtp": f"127.0.0.1:{smtp.port}",
                        "authserv": "mx.den.example",
                        "ca": str(certificate),
                    },
                    "xmpp": {
                        "jid": f"{xmpp.PEOPLE[0]}@localhost",
                        "password": "secret",
                        "host": "127.0.0.1",
                        "port": jabber.port,
                        "ca": jabber.certificate,
                    },
                    "webhook": webhook(free_port(), "http://127.0.0.1:9/"),
                }
                yield {name: toml(name, table) for name, table in tables.items()}
            finally:
                smtp.stop()
                mailbox.stop()
                synapse_server.remove_started(folder / "matrix")


def webhook(port: int, url: str) -> dict[str, object]:
    """The settings of a webhook whose replies go to that URL."""
    return {"url": url, "secret": SECRET, "port": port, "allow": [SENDER]}


def toml(name: str, settings: Mapping[str, object]) -> str:
    """A channel's table."""
    lines = (f"{key} = {msgspec.json.encode(value).decode()}" for key, value in settings.items())
    return "\n".join([f"[channels.{name}]", *lines, ""])


class WebhookCaller:
    """A program that writes to a webhook, and gets the replies at `url`."""

    def __init__(self, http: aiohttp.ClientSession, to: str) -> None:
        self.url = ""
        self._http, self._to, self._key = http, to, key_of(SECRET)
        self._replies: dict[str, asyncio.Queue[str]] = {}
        self._runner = web.ServerRunner(web.Server(self._hear, access_log=None))

    async def start(self) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/"

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def talk(self, chat: str, text: str, now: float) -> str:
        """Write a message; its reply."""
        replies = self._replies.setdefault(chat, asyncio.Queue())
        body, number = msgspec.json.encode(WebhookMessage(text, chat, SENDER)), f"{chat}-{text}"
        proof = signature(self._key, number, str(int(now)), body)
        headers = {"webhook-id": number, "webhook-timestamp": str(int(now)), "webhook-signature": proof}
        async with self._http.post(self._to, data=body, headers=headers) as answer:
            if answer.status >= 300:
                raise Broken(f"the webhook answered {answer.status} {await answer.text()}")
        return await asyncio.wait_for(replies.get(), PATIENCE)

    async def _hear(self, request: web.BaseRequest) -> web.Response:
        reply = msgspec.json.decode(await request.read(), type=WebhookReply)
        self._replies[reply.chat].put_nowait(reply.content)
        return web.Response()
