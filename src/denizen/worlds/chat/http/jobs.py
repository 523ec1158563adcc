"""Routes for cron jobs: list, add and change them."""

import msgspec
from aiohttp import web

from denizen.errors import ToolRefused
from denizen.worlds.chat.http.requests import GATEWAY, read_body, refusing
from denizen.worlds.chat.timers.cron import JobRequest


async def get_jobs(request: web.Request) -> web.Response:
    """List the jobs, each with its next run (`due`) and what came of its last one (`last`)."""
    return await _carry_out(request, JobRequest("list"))


async def post_job(request: web.Request) -> web.Response:
    """Add, remove, enable or disable a job; `jobs` holds the added one."""
    return await _carry_out(request, await read_body(request, JobRequest))


async def _carry_out(request: web.Request, asked: JobRequest) -> web.Response:
    with refusing(400, ToolRefused):
        found = await request.app[GATEWAY].cron.carry_out(asked)
    return web.json_response({"jobs": msgspec.to_builtins(found)})


ROUTES = [web.get("/api/jobs", get_jobs), web.post("/api/jobs", post_job)]
