"""Starts a program through `warm.py`, and ends as it does: warm_start.py SOCKET (-m MODULE | FILE) [ARGUMENT ...].

It hands on signals. What it imports is little, as that is what it costs.
"""

import _signal  # pyrefly: ignore[missing-import]
import _socket
import marshal
import os
import sys

server = _socket.socket(_socket.AF_UNIX)
server.connect(sys.argv[1])
request = marshal.dumps((sys.argv[2:], os.getcwdb(), dict(os.environb)))  # noqa: PTH109
streams = b"".join(stream.to_bytes(4, sys.byteorder) for stream in (0, 1, 2))
server.sendmsg([len(request).to_bytes(8, "little")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
server.sendall(request)


def hand_on(number: int, _: object) -> None:
    """Let the program have the signal."""
    server.send(bytes([number]))


HANDED_ON = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT)
for number in HANDED_ON:
    _signal.signal(number, hand_on)
for stream in (0, 1, 2):
    os.close(stream)  # whoever reads them sees when the program closes them
reply = server.recv(4)
if not reply:
    os._exit(127)  # the server is gone
status = int.from_bytes(reply, "little", signed=True)
if status < 0:
    if -status in HANDED_ON:
        _signal.signal(-status, _signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
