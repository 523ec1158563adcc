"""`denizen channels`: list channels and add one."""

import socket
import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.cli.conftest import OnTerminal, Run

from denizen.config.plugins import channel_entries

SECRET = "whsec_" + "c2VjcmV0" * 6


def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class _Receiver(BaseHTTPRequestHandler):
    """A program that receives replies."""

    def do_HEAD(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    """The address of a program that receives replies."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/in"
    server.shutdown()
    server.server_close()
    thread.join()


def add(url: str, *more: str) -> list[str]:
    return ["channels", "add", "webhook", f"url={url}", f"secret={SECRET}", f"port={port()}", *more]


def test_channel_is_added_with_its_secret_in_the_environment_of_the_home(denizen: Run, home: Path, url: str) -> None:
    (home / "denizen.toml").write_text("# mine\n[gateway]\nport = 0  # any\n")
    added = denizen(*add(url))
    assert (added.status, "standardwebhooks" in added.err) == (0, True), added.err
    text = (home / "denizen.toml").read_text()
    assert text.startswith("# mine\n[gateway]\nport = 0  # any\n\n[channels.webhook]\n")
    assert 'secret = "${WEBHOOK_SECRET}"\n' in text
    assert (home / ".env").read_text() == f'WEBHOOK_SECRET="{SECRET}"\n'
    assert stat.S_IMODE((home / ".env").stat().st_mode) == 0o600
    listed = denizen("channels")
    assert "webhook  webhook  the gateway isn't running; no message yet" in listed.out
    assert "telegram" in listed.err


def test_second_channel_of_a_kind_has_a_name(denizen: Run, home: Path, url: str) -> None:
    assert denizen(*add(url)).status == 0
    assert "already has [channels.webhook]" in denizen(*add(url, "host=127.0.0.1")).err
    assert denizen(*add(url, "--name", "hook-2", "allow=ann, ben")).status == 0
    text = (home / "denizen.toml").read_text()
    assert '[channels.hook-2]\ntype = "webhook"\n' in text
    assert 'allow = ["ann", "ben"]' in text
    assert "HOOK_2_SECRET=" in (home / ".env").read_text()


def test_mistakes_in_the_settings_are_reported_and_nothing_is_written(denizen: Run, home: Path, url: str) -> None:
    refused = denizen(*add(url, "prot=1"))
    assert (refused.status, "channels.webhook.prot isn't a setting" in refused.err) == (2, True), refused.err
    assert "Give url=a string" in denizen("channels", "add", "webhook").err
    assert "can't be reached" in denizen(*add("http://127.0.0.1:9/in")).err
    assert "available: " in denizen("channels", "add", "owl").err
    assert not (home / "denizen.toml").exists()
    assert not (home / ".env").exists()


def test_missing_settings_are_asked_for(on_terminal: OnTerminal, home: Path, url: str) -> None:
    screen = on_terminal("channels", "add", "webhook", f"port={port()}", f"url={url}")
    screen.expect("The shared secret")
    screen.expect("secret: ")
    screen.enter(SECRET)
    screen.expect("Added webhook")
    assert SECRET not in screen.text
    assert (home / ".env").exists()


def test_failed_check_shows_only_its_error(on_terminal: OnTerminal, url: str) -> None:
    screen = on_terminal("channels", "add", "matrix", f"homeserver={url}", "user=@owl:den", "password=secret")
    screen.expect("error: ")
    assert "validating" not in screen.text


def test_setting_without_a_value_is_asked_for(on_terminal: OnTerminal, home: Path, url: str) -> None:
    screen = on_terminal("channels", "add", "webhook", f"port={port()}", f"url={url}", f"secret={SECRET}", "allow")
    screen.expect("allow: ")
    screen.enter("ann,ben")
    screen.expect("Added webhook")
    assert 'allow = ["ann", "ben"]' in (home / "denizen.toml").read_text()


def test_addresses_of_targets_are_kept_as_secrets(denizen: Run, home: Path) -> None:
    added = denizen("channels", "add", "apprise", "targets=phone=json://127.0.0.1:9/a?b=c,d, desk=json://127.0.0.1:9/b")
    assert "targets phone, desk" in added.err, added.err
    text = (home / "denizen.toml").read_text()
    assert 'targets = { "phone" = "${APPRISE_PHONE}", "desk" = "${APPRISE_DESK}" }' in text
    assert 'APPRISE_PHONE="json://127.0.0.1:9/a?b=c,d"\n' in (home / ".env").read_text()


@pytest.mark.parametrize("kind", sorted(channel_entries()))
def test_every_kind_says_which_settings_it_needs(denizen: Run, kind: str) -> None:
    refused = denizen("channels", "add", kind)
    assert (refused.status, "Give " in refused.err) == (2, True), refused.err
