"""Routes for cron jobs: list, add and change them."""

from typing import Literal

import msgspec
from aiohttp import web

from denizen.errors import ToolRefused
from denizen.worlds.chat.http.requests import GATEWAY, Refused, read_body
from denizen.worlds.chat.timers.cron import NewJob, no_job_error


class JobRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request: `add` a `job`, or `remove`, `enable` or `disable` the one with an `id`."""

    type: Literal["add", "remove", "enable", "disable"]
    job: NewJob | None = None
    id: str = ""


async def get_jobs(request: web.Request) -> web.Response:
    """List the jobs, each with its next run (`due`) and what came of its last one (`last`)."""
    return web.json_response({"jobs": msgspec.to_builtins(await request.app[GATEWAY].cron.statuses())})


async def post_job(request: web.Request) -> web.Response:
    """Add, remove, enable or disable a job."""
    cron, asked = request.app[GATEWAY].cron, await read_body(request, JobRequest)
    if asked.type != "add":
        if not await cron.change(asked.id, asked.type):
            raise Refused(404, no_job_error(asked.id))
        return web.json_response({"changed": asked.id})
    if asked.job is None:
        raise Refused(400, "`add` needs a `job`.")
    try:
        return web.json_response({"added": msgspec.to_builtins(await cron.schedule(asked.job))})
    except ToolRefused as why:
        raise Refused(400, str(why)) from why


ROUTES = [web.get("/api/jobs", get_jobs), web.post("/api/jobs", post_job)]
