"""Starts Python programs as copies of a process that has imported what they import, which saves most of their time.

    warm.py SOCKET

`warm_start.py` brings it a program, with the environment and the standard streams that it was given. What a program
has imported by its end the next ones begin with. The process ends with its standard input.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib
import marshal
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Generator
from pathlib import Path


@contextlib.contextmanager
def starter() -> Generator[list[str]]:
    """What stands for `python` in the command of a program that is to be started so, while the block runs.

    The program is another process than that of the command, which hands on signals. Killed, it takes the program along:
    at the latest before this starts another one.
    """
    if sys.platform != "linux":
        yield [sys.executable]
        return
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/socket"
        command = [sys.executable, __file__, path]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, cwd="/"
        ) as process:
            assert process.stdout
            process.stdout.readline()  # it listens
            yield [sys.executable, "-IS", str(Path(__file__).with_name("warm_start.py")), path]
            process.communicate()


class Server:
    """Starts what it is asked to, hands on signals, and reports exit statuses."""

    def __init__(self, path: str) -> None:
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(100)
        self._learnt, self._learns = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._children: dict[socket.socket, tuple[int, int]] = {}  # a client's: its process, and what tells of its end
        for source in (0, self._listener, self._learnt):
            self._selector.register(source, selectors.EVENT_READ)

    def serve(self) -> list[str]:
        """Serve: in the parent until its standard input ends; a child returns the arguments of its program."""
        while True:
            ready = [key for key, _ in self._selector.select()]
            for key in ready:
                if key.fileobj == 0:
                    os._exit(0)
                if key.fileobj is self._learnt:
                    self._learn()
                elif key.data in self._children:
                    self._attend(key.data, hand_on=key.fileobj is key.data)
            # what was killed is gone before another starts
            if any(key.fileobj is self._listener for key in ready) and (program := self._start()):
                return program

    def _start(self) -> list[str]:
        client, _ = self._listener.accept()
        head, streams, _, _ = socket.recv_fds(client, 8, 3)
        with client.makefile("rb") as file:
            request = file.read(int.from_bytes(head, "little"))
        try:
            program, folder, environ = marshal.loads(request)
        except EOFError:  # the client was killed
            return []
        if child := os.fork():
            for stream in streams:
                os.close(stream)
            end = os.pidfd_open(child)
            self._children[client] = child, end
            self._selector.register(client, selectors.EVENT_READ, client)
            self._selector.register(end, selectors.EVENT_READ, client)
            return []
        client.close()
        self._close()
        os.setsid()
        for target, stream in enumerate(streams):
            os.dup2(stream, target)
            os.close(stream)
        if os.isatty(2):
            fcntl.ioctl(2, termios.TIOCSCTTY, 0)
        for stream, name in enumerate(("stdin", "stdout", "stderr")):  # the parent's know what theirs were
            old, buffering = getattr(sys, name), 1 if name == "stderr" else -1
            new = open(stream, old.mode, buffering, old.encoding, old.errors, closefd=False)  # noqa: SIM115
            setattr(sys, name, new)
        os.chdir(folder)
        os.environb.clear()
        os.environb.update(environ)
        time.tzset()
        atexit.register(self._teach, {*sys.modules})
        return program

    def _close(self) -> None:
        """In a child, close what is the parent's."""
        self._selector.close()
        self._listener.close()
        self._learnt.close()
        for client, (_, end) in self._children.items():
            client.close()
            os.close(end)

    def _teach(self, known: set[str]) -> None:
        # in their order: _asyncio before asyncio would leave a mixture of both that has no current task
        names = [name for name in sys.modules if name not in known and not name.startswith("tests")]
        with contextlib.suppress(OSError):  # more than fits, or the parent is gone
            self._learns.send(marshal.dumps(names), socket.MSG_DONTWAIT)

    def _learn(self) -> None:
        for name in marshal.loads(self._learnt.recv(1_000_000)):
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        gc.collect()
        gc.freeze()

    def _attend(self, client: socket.socket, *, hand_on: bool) -> None:
        """Hand on signals to a client's program, which ends with its client; report the program's end."""
        child, end = self._children[client]
        signals = client.recv(100) if hand_on else b""
        for number in signals:
            os.kill(child, number)
        if signals:
            return
        if hand_on:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(OSError):
            client.send(os.waitstatus_to_exitcode(status).to_bytes(4, "little", signed=True))
        for source in (client, end):
            self._selector.unregister(source)
        os.close(end)
        client.close()
        del self._children[client]


def main() -> None:
    """Serve; in a child, be the program."""
    del sys.path[0]
    server = Server(sys.argv[1])
    print("listening", flush=True)
    program, *arguments = server.serve()
    if program == "-m":
        program, *_ = sys.argv = arguments
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.argv = [program, *arguments]
        sys.path.insert(0, str(Path(program).parent))
        runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
