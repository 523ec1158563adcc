"""Claude on Amazon Bedrock, through the signing and framing of Anthropic's SDK: the extra `denizen[bedrock]`.

Messages, events and failures are those of the Anthropic client. Credentials are AWS's own: `AWS_REGION`,
`AWS_BEARER_TOKEN_BEDROCK`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` and `AWS_PROFILE` of the
environment, else what boto3 finds (its configuration files, the machine's role).
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from http import HTTPStatus
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import msgspec

from denizen.config.extras import how_to_install
from denizen.errors import ConfigError
from denizen.events import StreamEvent
from denizen.models.anthropic import AnthropicModel
from denizen.models.catalogue import PricedModel
from denizen.models.failures import retry_after
from denizen.models.providers import PROVIDERS, Provider
from denizen.models.wire import AnswerReader
from denizen.ports import ModelRequest

if TYPE_CHECKING:
    from anthropic import AsyncAnthropicBedrock

_NOT_SET_UP: Final = "AWS isn't set up"
_CREDENTIALS: Final = {
    "aws_access_key": "AWS_ACCESS_KEY_ID",
    "aws_secret_key": "AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "AWS_SESSION_TOKEN",
    "aws_profile": "AWS_PROFILE",
}
"""The SDK's credentials by the variables that hold them; it looks itself for those that are unset."""

CONNECT_TIMEOUT_S: Final = 10.0
"""Seconds to connect."""

SILENCE_S: Final = {True: 120.0, False: 600.0}
"""Seconds without a byte after which a stream, or an answer in one piece, is given up."""


class BedrockModel(AnthropicModel):
    """A model of Bedrock's InvokeModel; `model` is an id or an inference profile of Bedrock.

    `api_key` is a Bedrock API key, in place of AWS credentials; an empty `base_url` is the region's. Raises ConfigError
    where the extra isn't installed.
    """

    count_path = ""
    usual = Provider(
        "bedrock", "https://bedrock-runtime.amazonaws.com", api="anthropic", documents=PROVIDERS["anthropic"].documents
    )

    def __init__(
        self,
        model: str,
        *,
        environ: Mapping[str, str],
        api_key: str = "",
        base_url: str = "",
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        if not (find_spec("anthropic") and find_spec("boto3")):
            raise ConfigError(f"bedrock needs packages that aren't installed: {how_to_install('bedrock')}")
        super().__init__(model, api_key=api_key, base_url=base_url, **options)
        self._settings: dict[str, Any] = {"base_url": base_url or None, "default_headers": headers, "max_retries": 0}
        self._settings["aws_region"] = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
        if key := api_key or environ.get("AWS_BEARER_TOKEN_BEDROCK"):
            self._settings["api_key"] = key
        else:
            self._settings |= {setting: environ.get(name) for setting, name in _CREDENTIALS.items()}
        self._sdk: AsyncAnthropicBedrock | None = None

    async def served(self) -> list[PricedModel]:
        raise self._identity.failure("AWS lists models elsewhere: `aws bedrock list-inference-profiles`")

    async def close(self) -> None:
        """Give back connections; a later request opens new ones."""
        sdk, self._sdk = self._sdk, None
        if sdk:
            await sdk.close()

    async def _receive(self, request: ModelRequest, answer: AnswerReader) -> AsyncGenerator[StreamEvent]:
        from anthropic import APIError, APIStatusError
        from httpx2 import HTTPError

        try:
            async with aclosing(self._payloads(request)) as payloads:
                async for data in payloads:
                    if request.stream:
                        for event in answer.feed([data]):
                            yield event
                    else:
                        answer.read(data)
        except (APIError, HTTPError) as error:  # the latter comes through once a stream has begun
            if answer.complete:
                return
            if not isinstance(error, APIStatusError):
                why = f"the connection failed: {error.__cause__ or error}"
                raise self._identity.failure(why, "timeout") from error
            status = 0 if error.status_code == HTTPStatus.OK else error.status_code
            failure = self._identity.refused(error.body or error.message, status)
            if (wait := retry_after(error.response.headers, self._clock.now())) is not None:
                failure.retry_after = wait
            raise failure from error

    async def _payloads(self, request: ModelRequest) -> AsyncGenerator[bytes]:
        """The events of the answer as JSON, or the whole answer. Raises the SDK's errors, and ModelError."""
        from anthropic import APIError, AsyncAnthropicBedrock, AsyncStream, Timeout
        from botocore.exceptions import BotoCoreError
        from httpx2 import HTTPError

        call: dict[str, Any] = {
            "path": "/v1/messages",
            "cast_to": object,
            "body": msgspec.json.decode(b"".join(self._body(request))),
            "options": {"timeout": Timeout(SILENCE_S[request.stream], connect=CONNECT_TIMEOUT_S)},
        }
        if self._sdk is None:
            try:
                self._sdk = AsyncAnthropicBedrock(**self._settings)
            except ValueError as error:
                raise self._identity.failure(f"{_NOT_SET_UP}: no region is set", "auth") from error
        try:
            answer = await self._sdk.post(**call, stream=request.stream, stream_cls=AsyncStream[Any])
        except (ValueError, RecursionError) as error:
            raise self._identity.failure("its answer is not a message in Anthropic's format") from error
        except (RuntimeError, BotoCoreError) as error:  # no credentials, no such profile
            missing = "no credentials are found" if isinstance(error, RuntimeError) else error
            raise self._identity.failure(f"{_NOT_SET_UP}: {missing}", "auth") from error
        if not request.stream:
            yield msgspec.json.encode(answer)
            return
        async with answer:
            try:
                async for event in answer:
                    yield msgspec.json.encode(event)
            except (APIError, HTTPError):
                raise
            except Exception as error:  # the boundary to the SDK: where a frame makes no sense, it may raise anything
                raise self._identity.failure("its stream is damaged", "timeout") from error
