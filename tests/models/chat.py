"""A model of a server that speaks OpenAI's format, and what that server gets."""

from typing import Any

from tests.models.calls import answer, call

from denizen.messages import AssistantMessage, Text, UserMessage
from denizen.models.openai import OpenAIModel
from denizen.models.providers import provider_named
from denizen.ports import ModelRequest
from denizen.testing import LoopbackOpenAI

OK = AssistantMessage([Text("ok")])
HI = UserMessage([Text("Hi")], "m1")


def model(server: LoopbackOpenAI, provider: str = "openai", name: str = "m") -> OpenAIModel:
    """The model behind that server."""
    return OpenAIModel(name, provider_named(provider), api_key="key-0123456789", base_url=server.base_url)


async def sent(server: LoopbackOpenAI, asked: ModelRequest, provider: str = "openai", name: str = "m") -> Any:
    """The body that the server gets."""
    server.say(OK)
    answer(await call(model(server, provider, name), asked))
    return server.requests[-1].json
