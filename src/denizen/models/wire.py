"""The base of the wire clients: one request, one answer, and every failure as a `Failed` at its end."""

import asyncio
import errno
import ssl
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from http import HTTPStatus
from typing import Any, Final, Protocol

import msgspec
from msgspec.structs import replace

from denizen.config.settings import UNSET, ModelSettings
from denizen.errors import ConfigError, ModelError
from denizen.events import Failed, Finished, StreamEvent
from denizen.messages import AssistantMessage, AssistantPart, Message, ToolResult
from denizen.models.catalogue import PricedModel
from denizen.models.encoding import Encoded, Encodings, encode_json
from denizen.models.endpoint import Endpoint
from denizen.models.failures import ModelIdentity, retry_after
from denizen.models.http import Http, Response, SseParser
from denizen.models.listing import models_in
from denizen.models.parsing import UNREADABLE
from denizen.models.providers import Api, Provider, provider_named
from denizen.models.refusals import refuses_schema, refuses_thoughts, with_documents_as_text, without_signature
from denizen.ports import Limits, ModelRequest
from denizen.runtime.clock import Clock, SystemClock

LIST_TIMEOUT_S: Final = 10.0
"""Seconds that a provider has to list its models."""

COUNT_TIMEOUT_S: Final = 10.0
"""Seconds that a provider has to count the tokens of a call."""

MAX_PAUSES: Final = 10
"""The most times in a row that a provider may pause between its own tools and be asked to continue."""


class AnswerReader(Protocol):
    """An answer as it is put together."""

    done: bool
    """Nothing more is to come."""

    @property
    def complete(self) -> bool:
        """Whether it is whole."""

    @property
    def paused(self) -> bool:
        """Whether it is whole but for what the provider would add if asked again."""

    def feed(self, payloads: Sequence[bytes]) -> Sequence[StreamEvent]:
        """The events that the next payloads add. Raises ModelError for a reported failure or damaged data."""

    def read(self, body: bytes) -> None:
        """The whole answer, when it came in one piece."""

    def message(self) -> AssistantMessage:
        """The answer."""


class WireModel(ABC):
    """A model that is asked over HTTP. `name` is `provider:model`; an empty `base_url` is the provider's own.

    Several models may share one `http`; closing any of them closes its connections. `settings` are what the user set
    for this model; what of them is in each request comes with that.
    """

    path: str
    list_path = "/models"
    count_path = ""
    """The endpoint that counts a call's tokens, below `path`; empty if there is none."""
    counted_fields: frozenset[str] = frozenset()
    """The fields of a request that its tokens are counted by."""
    messages_field = "messages"
    usual: Provider
    api: Api

    def __init__(
        self,
        model: str,
        provider: Provider | None = None,
        *,
        api_key: str = "",
        base_url: str = "",
        headers: Mapping[str, str] | None = None,
        profile_id: str = "",
        limits: Callable[[], Limits] = Limits,
        http: Http | None = None,
        clock: Clock | None = None,
        settings: ModelSettings = UNSET,
    ) -> None:
        self.model = model
        self._chosen = settings
        self.provider = provider or self.usual
        self.name = f"{self.provider.name}:{model}".removesuffix(":")
        address = base_url or self.provider.base_url
        known = self.usual if self.provider.name == self.usual.name else provider_named(self.provider.name)
        form = "" if self.api == known.api else self.api
        self._identity = ModelIdentity(self.name, self.provider.name, profile_id, key := api_key.strip(), address, form)
        self.author = self._identity.author
        self._setting = f"providers.{self.provider.name}.base_url"
        self._to = Endpoint(address, self.path, self._setting, self._credentials(key), headers or {})
        self._counts = True
        self._limits = limits
        self.local = self.provider.local
        self._http = http or Http()
        self._clock = clock or SystemClock()
        self._encodings = Encodings(self._run)
        self._refused_thoughts: frozenset[int] = frozenset()  # hashes of the parts whose thoughts aren't sent any more
        self._refused_schemas = list[dict[str, Any]]()

    async def _endpoint(self, request: ModelRequest) -> Endpoint:
        """The target of a request. Raises ModelError, ConfigError."""
        return self._to

    def _credentials(self, api_key: str) -> Mapping[str, str]:
        """The header fields that hold the key."""
        return {"Authorization": f"Bearer {api_key}"} if api_key else {}

    @abstractmethod
    def _fields(self, request: ModelRequest) -> dict[str, Any]:
        """The request without its messages."""

    def _head(self, request: ModelRequest) -> bytes:
        """The request as JSON, up to the bracket that opens its messages, or to a first message of its own."""
        return _opened(self._fields(request), self.messages_field)

    @abstractmethod
    def _run(self, run: Sequence[Message]) -> bytes:
        """Its wire messages; see `EncodeRun`."""

    @abstractmethod
    def _new_answer(self) -> AnswerReader:
        """An empty answer."""

    def _adapts_to(self, error: ModelError) -> bool:
        """Whether requests are from now on written otherwise, as the refusal of this one asks for."""
        known, self.provider = self.provider, with_documents_as_text(self.provider, error)
        return self.provider != known

    def _should_repeat(self, last: Finished | Failed, request: ModelRequest) -> bool:
        """Whether the request is to be made once more, written as its refusal asks for."""
        if not isinstance(last, Failed):
            return False
        error = last.error
        if not (
            self._drops_schema(error, request) or self._adapts_to(error) or self._drops_refused_thoughts(error, request)
        ):
            return False
        self._encodings = Encodings(self._run)
        return True

    def _drops_schema(self, error: ModelError, request: ModelRequest) -> bool:
        """Whether the refused schema of the answer is from now on left to the words that ask for it."""
        schema = request.output_schema
        if not schema or schema in self._refused_schemas or not refuses_schema(error):
            return False
        self._refused_schemas.append(schema)
        return True

    def _drops_refused_thoughts(self, error: ModelError, request: ModelRequest) -> bool:
        """Whether thoughts in this request are from now on left out, as its refusal asks for."""
        if not refuses_thoughts(error):
            return False
        replies = [message for message in request.messages if isinstance(message, AssistantMessage)]
        thoughts = {hash(part) for reply in replies for part in reply.content if without_signature(part) is not part}
        new = thoughts - self._refused_thoughts
        self._refused_thoughts |= new
        return bool(new)

    def _sent(self, message: AssistantMessage) -> list[AssistantPart]:
        """The parts of an answer, without the thoughts that were refused."""
        if not self._refused_thoughts:
            return message.content
        parts = (without_signature(part) if hash(part) in self._refused_thoughts else part for part in message.content)
        return [part for part in parts if part]

    def _latest(self, encoded: Encoded) -> list[bytes]:
        """The runs as this request sends them."""
        return encoded.texts

    def limits(self, session_key: str = "") -> Limits:
        """Its context window and longest answer; what was passed as `limits` is asked now, not before."""
        return self._limits()

    async def close(self) -> None:
        """Give back connections; a later request opens new ones."""
        await self._http.close()

    async def served(self) -> list[PricedModel]:
        """The models that the provider lists now, with what it says of them. Raises ModelError if it lists none."""
        try:
            async with asyncio.timeout(LIST_TIMEOUT_S), self._http.get(self._to.at(self.list_path)) as response:
                body = await response.read()
        except ConfigError as error:
            raise self._identity.failure(str(error)) from error
        except OSError as error:
            raise self._cut_off(error, began=False) from error
        if response.status != HTTPStatus.OK:
            raise self._identity.refused(body, response.status)
        try:
            found = [*models_in(msgspec.json.decode(body), self.provider.name)]
        except UNREADABLE as error:
            raise self._identity.failure("its list of models isn't JSON") from error
        if not found:
            raise self._identity.failure("it lists no models")
        return found

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """The tokens of the call, as its provider counts them; None if it doesn't."""
        if not self.count_path:
            return None
        fields = {name: value for name, value in self._fields(request).items() if name in self.counted_fields}
        messages = b",".join(self._latest(self._encodings.of(request.messages, request.session_key)))
        to = self._to.at(f"{self.path}{self.count_path}")
        return await self._counted(to, [_opened(fields, self.messages_field), messages, b"]}"], "input_tokens")

    async def _counted(self, to: Endpoint, body: Sequence[bytes], field: str) -> int | None:
        """The number in `field` of what `to` answers; a server without that path isn't asked again."""
        if not self._counts:
            return None
        try:
            async with asyncio.timeout(COUNT_TIMEOUT_S), self._http.post(to, body, stream=False) as response:
                self._counts = response.status not in {404, 405, 501}
                answer = msgspec.json.decode(await response.read()) if response.status == HTTPStatus.OK else None
        except (OSError, ConfigError, *UNREADABLE):  # whatever is wrong, the call itself will tell
            return None
        tokens = answer.get(field) if isinstance(answer, dict) else None
        return tokens if isinstance(tokens, int) else None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent]:
        """The answer as it comes, or in one piece (`request.stream`); see `Model.stream`."""
        answer = self._new_answer()
        try:
            async with aclosing(self._receive(request, answer)) as received:
                async for event in received:
                    yield event
            if not answer.complete:
                raise self._identity.failure("the stream ended before the answer did", "timeout")
            last: Finished | Failed = Finished(answer.message())
        except ModelError as error:
            last = Failed(error)
        begun: AssistantMessage | None = None
        if (
            isinstance(last, Finished)
            and answer.paused
            and not all(isinstance(message, AssistantMessage) for message in request.messages[-MAX_PAUSES:])
        ):
            begun = last.message
            request = replace(request, messages=[*request.messages, begun])
        elif not self._should_repeat(last, request):
            yield last
            return
        async with aclosing(self.stream(request)) as events:
            async for event in events:
                if begun and isinstance(event, Finished):  # both parts are one message
                    more = event.message
                    content, usage = [*begun.content, *more.content], begun.usage.joined(more.usage)
                    event = Finished(replace(more, content=content, usage=usage))
                yield event

    async def _receive(self, request: ModelRequest, answer: AnswerReader) -> AsyncGenerator[StreamEvent]:
        """Make the request and read its answer. Raises ModelError unless the answer was whole when it broke off."""
        began = False
        try:
            to = await self._endpoint(request)
            async with self._http.post(to, self._body(request), stream=request.stream) as response:
                if await self._in_one_piece(response, request):
                    answer.read(await response.read())
                    return
                events = SseParser()
                while not answer.done and (data := await response.read_some()):
                    began = True
                    for event in answer.feed(events.feed(data)):
                        yield event
                for event in answer.feed(events.close()) if not answer.done else ():
                    yield event
                await response.finish()
        except ConfigError as error:
            raise self._identity.failure(str(error)) from error
        except OSError as error:
            if not answer.complete:
                raise self._cut_off(error, began=began) from error

    def _needs_own_thoughts(self, reply: AssistantMessage) -> bool:
        """Whether the model refuses to think in a round of tools that this reply began, without thoughts of its own."""
        return False

    def _body(self, request: ModelRequest) -> list[bytes]:
        if request.reasoning and request.messages and isinstance(request.messages[-1], ToolResult):
            reply = next((each for each in reversed(request.messages) if isinstance(each, AssistantMessage)), None)
            if reply and self._needs_own_thoughts(reply):
                request = replace(request, reasoning="none")
        if request.output_schema in self._refused_schemas:
            request = replace(request, output_schema=None)
        encoded = self._encodings.of(request.messages, request.session_key)
        settings = replace(request, messages=(), tokens=0)
        if encoded.settings != settings:
            encoded.settings, encoded.head = settings, self._head(request)
        comma = b"," if encoded.runs and not encoded.head.endswith(b"[") else b""
        return [encoded.head, comma, b",".join(self._latest(encoded)), b"]}"]

    async def _in_one_piece(self, response: Response, request: ModelRequest) -> bool:
        """Whether the answer isn't a stream. Raises ModelError if it is a refusal."""
        if response.status != 200:
            body = b""
            with suppress(OSError):  # the status says enough where its words break off
                body = await response.read()
            error = self._identity.refused(body, response.status)
            if (wait := retry_after(response.headers, self._clock.now())) is not None:
                error.retry_after = wait
            raise error
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type == "text/html":
            raise self._identity.failure(f"answered with a web page: is {self._setting} right?")
        return media_type == "application/json" if request.stream else media_type != "text/event-stream"

    def _cut_off(self, error: OSError, *, began: bool) -> ModelError:
        if isinstance(error, ssl.SSLCertVerificationError):
            return self._identity.failure(f"can't be reached: {error}")
        if isinstance(error, TimeoutError):
            failure = self._identity.failure(f"no answer in time ({error or 'it was too slow'})", "timeout")
            failure.silent = not began
            return failure
        if f"[Errno {errno.ECONNREFUSED}]" in str(error):  # also where each address of a host refused
            return self._identity.failure(f"no server listens at {self._to.base_url} (connection refused)", "timeout")
        return self._identity.failure(f"the connection failed: {error or type(error).__name__}", "timeout")


def _opened(fields: dict[str, Any], messages_field: str) -> bytes:
    return b'%s,"%s":[' % (encode_json(fields)[:-1], messages_field.encode())
