"""The gateway as a service of the user's: a systemd unit, or a launchd agent on macOS."""

import shlex
import sys
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from denizen.config.files import write_private

_LABEL = "denizen.gateway"


class Service(NamedTuple):
    """A file that describes the service, its text, and what starts it."""

    path: Path
    text: str
    start: str


def describe(platform: str, user: Path, home: Path) -> Service:
    """The service that serves the home, for the manager of services of that platform (`sys.platform`)."""
    command = [sys.executable, "-P", "-m", "denizen", "gateway"]
    if platform == "darwin":
        path = user / "Library" / "LaunchAgents" / f"{_LABEL}.plist"
        return Service(path, _plist(command, home), f"launchctl bootstrap gui/$(id -u) {shlex.quote(str(path))}")
    path = user / ".config" / "systemd" / "user" / "denizen-gateway.service"
    start = "systemctl --user daemon-reload && systemctl --user enable --now denizen-gateway"
    return Service(path, _unit(command, home), start)


def install(service: Service) -> None:
    """Write its file."""
    service.path.parent.mkdir(parents=True, exist_ok=True)
    write_private(service.path, service.text.encode())


def _unit(command: list[str], home: Path) -> str:
    return f"""\
[Unit]
Description=Denizen's gateway
After=network-online.target

[Service]
Environment={_quoted(f"DENIZEN_HOME={home}")}
ExecStart={" ".join(_quoted(word).replace("$", "$$") for word in command)}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=5
TimeoutStopSec=60

[Install]
WantedBy=default.target
"""


def _quoted(text: str) -> str:
    """A word as systemd reads it: in quotes, with its specifiers escaped."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _plist(command: list[str], home: Path) -> str:
    arguments = "\n".join(f"    <string>{escape(word)}</string>" for word in command)
    return f"""\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{_LABEL}</string>
  <key>ProgramArguments</key>
  <array>
{arguments}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
    <key>DENIZEN_HOME</key>
    <string>{escape(str(home))}</string>
  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
</dict>
</plist>
"""
