"""The page: its files, and the policy under which browsers show them."""

from pathlib import Path

from aiohttp import hdrs, web

from denizen.worlds.chat.http.requests import Refused

FOLDER = Path(__file__).with_name("page")
"""The files that `web/` is built into."""
ASSET, VIEW = "/assets/{name}", "/{view}{rest}"
PAGE_ROUTES = frozenset({"/", ASSET, VIEW})
"""Routes of the page's files. They hold nothing private."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


async def harden(_: web.Request, response: web.StreamResponse) -> None:
    """Add security headers: only the page's own content loads, and no other page can embed or read it."""
    response.headers.update(_HEADERS)


async def get_page(_: web.Request) -> web.FileResponse:
    """The page: the same file under each of its addresses."""
    return _file("index.html", "no-cache")


async def get_asset(request: web.Request) -> web.FileResponse:
    """A file of the page, whose name changes with its content."""
    return _file(f"assets/{request.match_info['name']}", "public, max-age=31536000, immutable")


def _file(name: str, caching: str) -> web.FileResponse:
    path = FOLDER / name
    if not path.is_file():
        raise Refused(404, f"The page has no file {name}.")
    return web.FileResponse(path, headers={hdrs.CACHE_CONTROL: caching})


ROUTES = [
    web.get("/", get_page),
    web.get(r"/assets/{name:\w[\w.-]*}", get_asset),
    web.get(r"/{view:chat|story|waiting|sessions|charts|more}{rest:(?:/.*)?}", get_page),
]
