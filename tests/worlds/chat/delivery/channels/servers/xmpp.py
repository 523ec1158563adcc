"""Prosody, a relay before it that breaks connections, and a person's client."""

import asyncio
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

from slixmpp import JID, ClientXMPP
from tests.worlds.chat.delivery.channels.servers.program import running, self_signed
from tests.worlds.moo.djangomoo import free_port

PEOPLE = ("home", "work")
PROSODY = """
run_as_root = true
pidfile = "{folder}/prosody.pid"
data_path = "{folder}/data"
certificates = "{folder}"
modules_enabled = {{ "disco", "roster", "saslauth", "tls", "offline", "ping"{modules} }}
modules_disabled = {{ "s2s" }}
interfaces = {{ "127.0.0.1" }}
c2s_ports = {{ {port} }}
c2s_direct_tls_ports = {{ {tls_port} }}
s2s_ports = {{ }}
authentication = "internal_plain"
log = {{ {{ levels = {{ min = "info" }}, to = "console" }} }}
ssl = {{ certificate = "{certificate}", key = "{key}" }}
VirtualHost "localhost"
Component "rooms.localhost" "muc"
modules_enabled = {{ "muc_mam" }}
muc_log_by_default = true
muc_room_locking = false
"""


class XmppServer(NamedTuple):
    """Where a server for `localhost` listens, and the certificate to trust."""

    port: int
    tls_port: int
    certificate: str
    accounts: Path

    def add_account(self, name: str) -> str:
        """Make an account whose password is `secret`; its address."""
        self.accounts.mkdir(parents=True, exist_ok=True)
        (self.accounts / f"{name}.dat").write_text('return { ["password"] = "secret" };', encoding="utf-8")
        return f"{name}@localhost"


@contextmanager
def prosody(folder: Path, *, modules: tuple[str, ...] = ("smacks", "mam")) -> Generator[XmppServer]:
    """Prosody with the accounts `PEOPLE` and these modules."""
    certificate, key = self_signed(folder)
    port, tls_port = free_port(), free_port()
    names = {"folder": folder, "port": port, "tls_port": tls_port, "certificate": certificate, "key": key}
    config = PROSODY.format(**names, modules="".join(f', "{module}"' for module in modules))
    (folder / "prosody.cfg.lua").write_text(config, encoding="utf-8")
    server = XmppServer(port, tls_port, str(certificate), folder / "data" / "localhost" / "accounts")
    for name in PEOPLE:
        server.add_account(name)
    with running(["prosody", "--config", str(folder / "prosody.cfg.lua"), "-F"], folder, port, tls_port):
        yield server


class Person:
    """A person's client: `read` has the texts as a reader finds them now, by chat, and the id of each.

    `agent` is the address that the person writes to.
    """

    def __init__(self, server: XmppServer, name: str, agent: str) -> None:
        self.agent = agent
        self.client: Any = ClientXMPP(f"{name}@localhost/phone", "secret")
        self.client.ca_certs = Path(server.certificate)
        self.client.enable_direct_tls = False
        for plugin in ("xep_0045", "xep_0199", "xep_0308"):
            self.client.register_plugin(plugin)
        self.read: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self.written: Any = None
        self._port = server.port
        self.client.add_event_handler("message", self._hear)

    async def connect(self, *rooms: str) -> Self:
        """Log in, and join the rooms."""
        started = asyncio.get_running_loop().create_future()
        self.client.add_event_handler("session_start", started.set_result, disposable=True)
        self.client.connect("127.0.0.1", self._port)
        await asyncio.wait_for(started, 30)
        self.client.send_presence()
        for room in rooms:
            await self.client.plugin["xep_0045"].join_muc_wait(JID(room), "home", maxstanzas=0)
        return self

    async def leave(self) -> None:
        await self.client.disconnect()

    async def write(self, to: str, text: str, *, kind: str = "chat", edits: str = "") -> None:
        """Send a message; return once the server has it."""
        stanza = self.written = self.client.make_message(to, text, mtype=kind)
        stanza["id"] = self.client.new_id()
        if edits:
            stanza["replace"]["id"] = edits
        stanza.send()
        await self.sync()

    async def sync(self) -> None:
        """Wait until what the server had for this person has arrived."""
        await self.client.plugin["xep_0199"].ping(JID("localhost"))

    def _hear(self, stanza: Any) -> None:
        edits = stanza.get_plugin("replace", check=True)
        if stanza["type"] in {"chat", "groupchat"}:
            self.read[stanza["from"].bare][edits["id"] if edits else stanza["id"]] = stanza["body"]
