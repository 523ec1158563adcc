"""How alike texts are, as an OpenAI-compatible `/embeddings` endpoint sees it."""

import asyncio
import math
from collections.abc import Sequence

import msgspec

from denizen.config.settings import EmbeddingSettings
from denizen.errors import ConfigError, DenizenError

BATCH = 64
"""Texts that are sent at once."""
SECONDS = 20.0
"""How long one answer may take."""

Vector = tuple[float, ...]


class _Embedding(msgspec.Struct):
    index: int
    embedding: list[float]


class _Answer(msgspec.Struct):
    data: list[_Embedding]


class Embeddings:
    """Asks the server that the settings name; each question is a connection of its own."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        if not settings.model:
            raise ConfigError("memory.embeddings.base_url is set, but no memory.embeddings.model: name one.")
        from denizen.models.endpoint import Endpoint

        self.model = settings.model
        key = {"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
        self._to = Endpoint(settings.base_url, "/embeddings", "memory.embeddings.base_url", key)

    async def vectors(self, texts: Sequence[str]) -> list[Vector]:
        """A vector of length 1 for each of at most `BATCH` texts. Raises DenizenError when the server gives none."""
        try:
            async with asyncio.timeout(SECONDS):
                return self._read(await self._ask(texts), len(texts))
        except TimeoutError as late:
            raise self._failed(f"no answer within {SECONDS:g} seconds") from late
        except OSError as error:
            raise self._failed(str(error) or type(error).__name__) from error

    async def _ask(self, texts: Sequence[str]) -> bytes:
        from denizen.models.http import Http

        body = msgspec.json.encode({"model": self.model, "input": [*texts], "encoding_format": "float"})
        http = Http(connect=5.0, patience=SECONDS)
        try:
            async with http.post(self._to, [body], stream=False) as response:
                status, answer = response.status, await response.read()
        finally:
            await http.close()
        if status != 200:
            raise self._failed(f"status {status}")
        return answer

    def _read(self, answer: bytes, count: int) -> list[Vector]:
        try:
            found = sorted(msgspec.json.decode(answer, type=_Answer).data, key=lambda item: item.index)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._failed(f"its answer can't be read: {error}") from error
        if [item.index for item in found] != [*range(count)]:
            raise self._failed(f"it answered {len(found)} vectors for {count} texts")
        vectors = [_unit(item.embedding) for item in found]
        if not all(vectors):
            raise self._failed("it answered vectors without a direction")
        return vectors

    def _failed(self, why: str) -> DenizenError:
        return DenizenError(f"The embeddings of {self._to.server} failed ({why}): memory.embeddings says where it is.")


def likeness(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine between two vectors of length 1; below 0 for opposites."""
    return 1 - math.dist(one, other) ** 2 / 2


def _unit(numbers: list[float]) -> Vector:
    length = math.hypot(*numbers)
    return tuple(number / length for number in numbers) if 0 < length < math.inf else ()
