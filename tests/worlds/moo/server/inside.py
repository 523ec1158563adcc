"""A DjangoMOO server's own processes, run by the Python of its environment: inside.py bootstrap|worker|shell.

Two faults of version 1.20.0 are worked around here, without which no test could rely on it; each is described below.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import django

django.setup()

PLAYERS = ("Wizard", "Foreman", "Mason", "Tinker", "Joiner", "Harbinger", "Player")
FOLDER = Path(os.environ["MOO_FOLDER"])


def bootstrap() -> None:
    """Fill an empty database: the default world, and an account for each of its players, password NAME-password."""
    from django.contrib.auth.models import User
    from django.contrib.sites.models import Site
    from django.core.management import call_command
    from moo.core.models import Object, Player, Property

    call_command("migrate", verbosity=0, skip_checks=True)
    call_command("moo_init", skip_checks=True)
    site = Site.objects.get(pk=1)
    Player.objects.all().delete()  # the fault: these are of no site, and nobody could sign in
    for name in PLAYERS:
        user, _ = User.objects.get_or_create(username=name.lower())
        user.set_password(f"{name.lower()}-password")
        user.save()
        avatar = Object.global_objects.get(name=name, unique_name=True, site=site)
        Player.objects.create(user=user, avatar=avatar, site=site, wizard=name == "Wizard")
        # and they belong to the wizard: a player's first command writes one of them, which would end the session
        Property.objects.filter(origin=avatar, inherit_owner=False).update(owner=avatar)


def worker() -> None:
    """Carry out commands."""
    import moo.celery

    moo.celery.WORKER_READINESS_FILE = FOLDER / "ready"
    moo.celery.WORKER_LIVENESS_FILE = FOLDER / "alive"
    app = moo.celery.app
    app.loader.import_default_modules()
    app.worker_main(["worker", "--loglevel=INFO", "--concurrency=2", "--without-gossip", "--without-mingle"])


_tasks: ContextVar[set[asyncio.Task] | None] = ContextVar("tasks", default=None)


Interact = Callable[[object], Awaitable[None]]


def ending_its_tasks(interact: Interact) -> Interact:
    """End what a session started when it ends.

    The fault: a session that ends without @quit leaves a task that reads from a file descriptor. Once a new session
    has the same number, its commands vanish.
    """

    def start(loop: asyncio.AbstractEventLoop, work: Coroutine, **options: Any) -> asyncio.Task:
        task = asyncio.Task(work, loop=loop, **options)
        started = _tasks.get()
        if started is not None:
            started.add(task)
            task.add_done_callback(started.discard)
        return task

    async def interact_and_end(session: object) -> None:
        asyncio.get_running_loop().set_task_factory(start)
        started = set()
        _tasks.set(started)
        try:
            await interact(session)
        finally:
            for task in started - {asyncio.current_task()}:
                task.cancel()

    return interact_and_end


def shell() -> None:
    """Let players in over SSH, on 127.0.0.1."""
    import asyncssh
    from moo.shell.server import SSHServer, interact

    async def serve() -> None:
        await asyncssh.create_server(
            lambda: SSHServer(ending_its_tasks(interact)),
            "127.0.0.1",
            int(os.environ["MOO_PORT"]),
            server_host_keys=[FOLDER / "host_key"],
            line_editor=False,
        )
        await asyncio.Event().wait()

    asyncio.run(serve())


if __name__ == "__main__":
    {"bootstrap": bootstrap, "worker": worker, "shell": shell}[sys.argv[1]]()
