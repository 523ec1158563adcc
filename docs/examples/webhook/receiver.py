"""Prints each reply of a webhook channel once. Start it with `python -m aiohttp.web -P 8701 receiver:make_app`."""

import base64
import hashlib
import hmac
import json
import os
import time

from aiohttp import web

seen = set[str]()  # a real program stores the ids with its data


async def receive(request: web.Request) -> web.Response:
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    (message_id, sent_at, signatures), body = (request.headers[name] for name in names), await request.read()
    key = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
    digest = hmac.digest(key, f"{message_id}.{sent_at}.".encode() + body, hashlib.sha256)
    expected = f"v1,{base64.b64encode(digest).decode()}"
    is_signed = any(hmac.compare_digest(each, expected) for each in signatures.split())
    if not is_signed or abs(time.time() - int(sent_at)) > 300:
        return web.Response(status=401)
    if message_id not in seen:
        seen.add(message_id)
        print(json.loads(body)["content"], flush=True)
    return web.Response(status=204)


def make_app(_: list[str]) -> web.Application:
    app = web.Application()
    app.router.add_post("/replies", receive)
    return app
