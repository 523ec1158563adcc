"""Maps errors of Slack's Web API to outcomes of a message."""

from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from denizen.ports.channel import ChannelRefused, Sent
from denizen.worlds.chat.delivery.channels.outgoing import CONNECT_RETRY_S, REFUSED_RETRY_S

_FLOOD_RETRY_S = 30.0
_REFUSED = {
    "account_inactive",
    "invalid_auth",
    "not_allowed_token_type",
    "not_authed",
    "token_expired",
    "token_revoked",
}
_UNCERTAIN_ERRORS = {"", "fatal_error", "internal_error", "request_timeout", "service_unavailable"}


async def none_if_refused(call: Awaitable[Any]) -> Any:
    """The response to a call; None if Slack rejected it without effect."""
    from slack_sdk.errors import SlackApiError

    try:
        return await call
    except SlackApiError as error:
        if outcome_of_error(error).state != "failed":
            raise
        return None


async def outcome_of(sending: Awaitable[Sent]) -> Sent:
    """Send, and translate request errors into an outcome."""
    from slack_sdk.errors import SlackClientError

    try:
        return await sending
    except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
        return outcome_of_error(error)


def outcome_of_error(error: Exception) -> Sent:
    """The outcome of a message whose request raised this error."""
    from slack_sdk.errors import SlackApiError

    if isinstance(error, SlackApiError):
        response, code = error.response, _code(error)
        if getattr(response, "status_code", 0) == 429 or code == "ratelimited":
            wait = float(getattr(response, "headers", {}).get("Retry-After", _FLOOD_RETRY_S))
            return Sent("later", f"Slack takes more in {wait:g} s.", retry_after=wait)
        if code in _REFUSED:
            return Sent("later", f"Slack refuses the token: {code}.", retry_after=REFUSED_RETRY_S)
        if code not in _UNCERTAIN_ERRORS:
            return Sent("failed", f"Slack refuses it: {code}.")
    if isinstance(error, aiohttp.ClientConnectorError):
        return Sent("later", f"Slack can't be reached: {error}", retry_after=CONNECT_RETRY_S)
    return Sent("unknown", f"Slack's answer was lost: {error}")


def _code(error: Any) -> str:
    data = getattr(error.response, "data", None)
    return data.get("error", "") if isinstance(data, dict) else ""


@asynccontextmanager
async def report_refused_token(account: str) -> AsyncGenerator[None]:
    """Raise ChannelRefused if Slack refuses a token."""
    from slack_sdk.errors import SlackApiError

    try:
        yield
    except SlackApiError as error:
        if (code := _code(error)) not in _REFUSED:
            raise
        advice = "copy both tokens again from https://api.slack.com/apps"
        raise ChannelRefused(f"Slack refuses a token of {account} ({code}): {advice}.") from error
