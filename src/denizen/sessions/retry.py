"""Waiting for a store that can't be written now."""

import logging
from collections.abc import Awaitable, Callable

from denizen.errors import SessionHeld, SessionUnavailable
from denizen.runtime.clock import Clock

_log = logging.getLogger(__name__)


async def retry_unavailable(write: Callable[[], Awaitable[str]], clock: Clock, pause_s: float) -> str:
    """What `write` returns, tried every `pause_s` seconds for as long as the store can't be written; 0: tried once."""
    while True:
        try:
            return await write()
        except SessionHeld:
            raise
        except SessionUnavailable as error:
            if not pause_s:
                raise
            _log.error("%s Trying again.", error)
        await clock.sleep(pause_s)
