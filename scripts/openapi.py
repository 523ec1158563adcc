"""Print the description of the gateway's routes, without a gateway: `web/` makes its types from it."""

import json

from aiohttp import web

from denizen.worlds.chat.http.app import API
from denizen.worlds.chat.http.openapi import describe

if __name__ == "__main__":
    app = web.Application()
    for group in API:
        app.add_routes(group.ROUTES)
    print(json.dumps(describe(app), indent=1, sort_keys=True))
