"""IRC servers: ngircd, InspIRCd with the services of Atheme, and a person's client."""

import asyncio
import os
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from tests.worlds.chat.delivery.channels.servers.program import running, self_signed
from tests.worlds.moo.djangomoo import free_port

NGIRCD = """
[Global]
Name = irc.test
Info = a test
AdminInfo1 = a test
MotdPhrase = Welcome
Listen = 127.0.0.1
Ports = {port}
[Limits]
MaxConnectionsIP = 0
MaxPenaltyTime = 0
[Operator]
Name = root
Password = secret
[Options]
DNS = no
Ident = no
PAM = no
"""
INSPIRCD = """
<config format="xml">
<server name="irc.test" description="a test" network="Test" id="001">
<admin name="root" nick="root" email="root@irc.test">
<bind address="127.0.0.1" port="{port}" type="clients">
<bind address="127.0.0.1" port="{tls_port}" type="clients" sslprofile="tls">
<bind address="127.0.0.1" port="{link_port}" type="servers">
<sslprofile name="tls" provider="gnutls" certfile="{certificate}" keyfile="{key}">
<module name="ssl_gnutls"> <module name="spanningtree"> <module name="services_account"> <module name="sasl">
<module name="cap"> <module name="ircv3"> {tags}
<sasl target="services.test">
<class name="root" commands="KILL"> <type name="root" classes="root">
<oper name="root" password="secret" host="*" type="root">
<connect name="all" allow="*" timeout="60" pingfreq="120" recvq="65536" threshold="1000" commandrate="100000"
 fakelag="no" localmax="100" globalmax="100" resolvehostnames="no" useident="no">
<link name="services.test" ipaddr="127.0.0.1" port="1" allowmask="127.0.0.1" sendpass="secret" recvpass="secret">
<uline server="services.test" silent="yes">
<pid file="{folder}/inspircd.pid">
<path configdir="{folder}" datadir="{folder}" logdir="{folder}" moduledir="/usr/lib/inspircd/modules">
"""
POLL_S = 0.01
TAGS = " ".join(
    f'<module name="{name}">'
    for name in ("ircv3_accounttag", "ircv3_servertime", "ircv3_msgid", "ircv3_ctctags", "botmode")
)
ATHEME = """
loadmodule "modules/protocol/inspircd";
loadmodule "modules/backend/opensex";
loadmodule "modules/crypto/posix";
loadmodule "modules/nickserv/main";
loadmodule "modules/nickserv/identify";
loadmodule "modules/nickserv/register";
loadmodule "modules/saslserv/main";
loadmodule "modules/saslserv/plain";
serverinfo {{
    name = "services.test"; desc = "Services"; numeric = "00A"; recontime = 1; netname = "Test";
    hidehostsuffix = "users.test"; adminname = "root"; adminemail = "root@irc.test";
    registeremail = "root@irc.test"; loglevel = {{ error; }}; maxlogins = 50; maxusers = 50; mdlimit = 30;
    emaillimit = 10; emailtime = 300; auth = none; casemapping = rfc1459;
}};
uplink "irc.test" {{ host = "127.0.0.1"; password = "secret"; port = {link_port}; }};
nickserv {{ nick = "NickServ"; user = "NickServ"; host = "services.test"; real = "Nicks"; }};
saslserv {{ nick = "SaslServ"; user = "SaslServ"; host = "services.test"; real = "SASL"; }};
general {{ silent; }};
"""


class IrcServer(NamedTuple):
    """Where a server listens; only one with services has TLS, with a certificate of its own."""

    port: int
    tls_port: int = 0
    certificate: str = ""


@contextmanager
def ngircd(folder: Path) -> Generator[IrcServer]:
    """ngircd, without services."""
    port = free_port()
    (folder / "ngircd.conf").write_text(NGIRCD.format(port=port), encoding="utf-8")
    with running(["ngircd", "-n", "-f", str(folder / "ngircd.conf")], folder, port):
        yield IrcServer(port)


@contextmanager
def inspircd(folder: Path, *, tags: bool = True) -> Generator[IrcServer]:
    """InspIRCd with the services of Atheme; it tags messages, or not."""
    certificate, key = self_signed(folder)
    port, tls_port, link_port = free_port(), free_port(), free_port()
    names = {"port": port, "tls_port": tls_port, "link_port": link_port, "certificate": certificate, "key": key}
    config = INSPIRCD.format(**names, folder=folder, tags=TAGS if tags else "")
    (folder / "inspircd.conf").write_text(config, encoding="utf-8")
    (folder / "atheme.conf").write_text(ATHEME.format(link_port=link_port), encoding="utf-8")
    as_root = ["--runasroot"] if os.getuid() == 0 else []
    server = ["inspircd", *as_root, "--nofork", "--nolog", "--config", str(folder / "inspircd.conf")]
    services = ["atheme-services", "-n", "-c", "atheme.conf", "-l", "atheme.log", "-p", "atheme.pid", "-D", "."]
    services = [str(folder / word) if word.startswith(("atheme.", ".")) else word for word in services]
    with running(server, folder, port, tls_port, link_port), running(services, folder):
        yield IrcServer(port, tls_port, str(certificate))


class Person:
    """A person's client: `heard` has the texts, by the chat that they came in."""

    def __init__(self, nick: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.nick = nick
        self.heard: defaultdict[str, list[str]] = defaultdict(list)
        self.lines: list[str] = []
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, server: IrcServer, nick: str, *rooms: str) -> Self:
        """A person who has that nick, and is in those rooms."""
        person = cls(nick, *await asyncio.open_connection("127.0.0.1", server.port))
        await person.say(f"NICK {nick}", f"USER {nick} 0 * :{nick}", until=" 00")
        for room in rooms:
            await person.say(f"JOIN {room}", until=" 366 ")
        return person

    async def say(self, *lines: str, until: str = "") -> list[str]:
        """Send lines; what the server says up to a line with that text, or up to the answer to a ping."""
        text = "".join(f"{line}\r\n" for line in (*lines, *([] if until else ["PING :done"])))
        self._writer.write(text.encode())
        heard: list[str] = []
        while not heard or (until or "done") not in heard[-1]:
            line = (await asyncio.wait_for(self._reader.readline(), 30)).decode().rstrip()
            if not line:
                raise ConnectionError(f"{self.nick} was disconnected after {heard}")
            if line.startswith("PING "):
                self._writer.write(f"PONG{line[4:]}\r\n".encode())
            if " PRIVMSG " in line:
                head, _, words = line.removeprefix("@").partition(" :")
                self.heard[head.split()[-1].lower()].append(words)
            heard.append(line)
        self.lines += heard
        return heard

    async def tell(self, target: str, text: str) -> None:
        """Say something to a nick, once somebody has it, or to a room."""
        while any(" 401 " in line for line in await self.say(f"PRIVMSG {target} :{text}")):  # noqa: ASYNC110 - likewise
            await asyncio.sleep(POLL_S)

    async def meet(self, nick: str, room: str) -> None:
        """Wait until that nick is in a room."""
        while not any(nick in line for line in await self.say(f"NAMES {room}")):  # noqa: ASYNC110 - another process
            await asyncio.sleep(POLL_S)

    async def log_in(self) -> None:
        """Register the nick with the services, as an account of that name."""
        while not any(" 900 " in line for line in self.lines):
            await self.tell("NickServ", f"REGISTER secret {self.nick}@irc.test")
            await asyncio.sleep(POLL_S)

    async def leave(self) -> None:
        """Disconnect."""
        self._writer.write(b"QUIT\r\n")
        while await self._reader.readline():
            pass
        self._writer.close()
        await self._writer.wait_closed()
