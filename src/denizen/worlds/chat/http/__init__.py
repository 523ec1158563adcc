"""The gateway over HTTP: one application, a module for each group of routes."""

from denizen.worlds.chat.http.app import make_app

__all__ = ["make_app"]
