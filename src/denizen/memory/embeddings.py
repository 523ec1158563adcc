"""Finds facts similar in meaning to a query, with an OpenAI-compatible `/embeddings` endpoint."""

import asyncio
import logging
import math
from collections.abc import Sequence

import msgspec

from denizen.config.settings import EmbeddingSettings
from denizen.errors import ConfigError, DenizenError
from denizen.memory.store import FactStore, Vector
from denizen.ports import Fact
from denizen.runtime.clock import Clock

BATCH_TEXTS = 64
"""Texts in one request."""
TIMEOUT_S = 20.0
"""For one request."""
MAX_COMPARED = 5_000
"""The latest facts of a store whose vectors are compared with the query's."""
RETRY_AFTER_S = 300.0
"""Delay before a failed server is asked again."""
_MAX_CHARS = 8_000
"""Characters of a query that are sent."""

_log = logging.getLogger(__name__)


class _Embedding(msgspec.Struct):
    index: int
    embedding: list[float]


class _Embeddings(msgspec.Struct):
    data: list[_Embedding]


class Embeddings:
    """Compares facts with queries; the server sees each fact once, with the next query after it was kept."""

    def __init__(self, settings: EmbeddingSettings, clock: Clock) -> None:
        if not settings.model:
            raise ConfigError("memory.embeddings.base_url is set, but no memory.embeddings.model: name one.")
        from denizen.models.endpoint import Endpoint

        key = {"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
        self._endpoint = Endpoint(settings.base_url, "/embeddings", "memory.embeddings.base_url", key)
        self._model = settings.model
        self._clock = clock
        self._asked_again_at = 0.0

    async def similarities(self, query: str, stores: Sequence[FactStore]) -> dict[str, float]:
        """Similarities (-1 to 1) by fact id; empty while the server fails, which is logged once.

        Raises DenizenError when a store can't be used.
        """
        if self._clock.monotonic() < self._asked_again_at:
            return {}
        model = self._model

        def unseen() -> list[tuple[FactStore, Fact]]:
            found = [(store, fact) for store in stores for fact in store.without_vector(model, BATCH_TEXTS)]
            return found[: BATCH_TEXTS - 1]  # the query goes along with them

        new = await asyncio.to_thread(unseen)
        try:
            vector, *others = await self._vectors([query[:_MAX_CHARS], *(fact.text for _, fact in new)])
        except DenizenError as error:
            if not self._asked_again_at:
                _log.warning("%s Facts are found by their words alone.", error)
            self._asked_again_at = self._clock.monotonic() + RETRY_AFTER_S
            return {}

        def compare() -> dict[str, float]:
            near: dict[str, float] = {}
            for store in stores:
                pairs = zip(new, others, strict=True)
                store.put_vectors(model, [(fact, each) for (owner, fact), each in pairs if owner is store])
                near |= store.similarities(model, vector, MAX_COMPARED)
            return near

        return await asyncio.to_thread(compare)

    async def _vectors(self, texts: Sequence[str]) -> list[Vector]:
        """A vector of length 1 for each of at most `BATCH_TEXTS` texts. Raises DenizenError."""
        from denizen.models.http import Http

        body = msgspec.json.encode({"model": self._model, "input": [*texts], "encoding_format": "float"})
        http = Http(connect_s=5.0, answer_silence_s=TIMEOUT_S)
        try:
            async with asyncio.timeout(TIMEOUT_S), http.post(self._endpoint, [body], stream=False) as response:
                status, answer = response.status, await response.read()
        except TimeoutError as error:
            raise self._failed(f"no answer within {TIMEOUT_S:g} seconds") from error
        except OSError as error:
            raise self._failed(str(error) or type(error).__name__) from error
        finally:
            await http.close()
        if status != 200:
            raise self._failed(f"status {status}")
        try:
            found = sorted(msgspec.json.decode(answer, type=_Embeddings).data, key=lambda item: item.index)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._failed(f"its answer can't be read: {error}") from error
        if [item.index for item in found] != [*range(len(texts))]:
            raise self._failed(f"it returned {len(found)} vectors for {len(texts)} texts")
        vectors: list[Vector] = []
        for item in found:
            length = math.hypot(*item.embedding)
            if not 0 < length < math.inf:
                raise self._failed("it returned vectors without a direction")
            vectors.append(tuple(number / length for number in item.embedding))
        return vectors

    def _failed(self, why: str) -> DenizenError:
        server = self._endpoint.server
        return DenizenError(f"The embeddings of {server} failed ({why}): memory.embeddings says where it is.")
