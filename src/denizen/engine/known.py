"""What the engine takes for granted of a model that tells nothing about itself."""

from collections.abc import AsyncIterator

from denizen.events import StreamEvent
from denizen.ports import KnownModel, Limits, Model, ModelRequest


def known(model: Model) -> KnownModel:
    """The model itself where it tells its name and limits, else with those of an unknown one."""
    return model if isinstance(model, KnownModel) else _Unknown(model)


class _Unknown:
    def __init__(self, model: Model) -> None:
        self._model = model
        self.name = type(model).__name__
        self.local = False

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        return self._model.stream(request)

    def limits(self, session_key: str = "") -> Limits:
        return Limits()

    async def close(self) -> None:
        pass
