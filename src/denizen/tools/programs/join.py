"""Runs a command in the network that a sandbox gave to another command.

A program of its own, of the standard library alone: python -I -S join.py PID COMMAND…

The network is that of a process below PID, because programs that make a sandbox stay outside it. Exits with 126, and
runs nothing, if that network can't be joined.
"""

# ruff: noqa: PTH116, PTH123, PTH208

import ctypes
import fcntl
import os
import sys

NS_GET_USERNS = 0xB701
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000


def main(outside: str, *command: str) -> None:
    """Become the command."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        network = os.open(f"/proc/{own_network(outside)}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        libc.setns(fcntl.ioctl(network, NS_GET_USERNS), CLONE_NEWUSER)  # who may join it without: root
        if libc.setns(network, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        os.execvp(command[0], command)  # noqa: S606 (it becomes the command)
    except OSError as error:
        sys.stderr.write(f"The network of the background command can't be joined: {error.strerror}\n")
        sys.exit(126)


def own_network(pid: str) -> str:
    """The first process below another that is in a network of its own. Raises OSError if none is."""
    outside = os.stat("/proc/self/ns/net").st_ino
    while os.stat(f"/proc/{pid}/ns/net").st_ino == outside:
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = file.read().rpartition(b")")[2].split()[1]
            except OSError:
                continue
            if parent == pid.encode():
                pid = name
                break
        else:
            raise ProcessLookupError(3, "it has ended")
    return pid


if __name__ == "__main__":
    main(*sys.argv[1:])
