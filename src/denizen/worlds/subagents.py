"""The records of subagents: of an agent's own kind, or by their definitions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from denizen.config import Config
from denizen.engine.record import AgentRecord
from denizen.errors import ToolRefused
from denizen.models import open_model
from denizen.ports import KnownModel, Tool, Toolset
from denizen.prompt import AgentFile
from denizen.runtime.clock import Clock
from denizen.text.tool_aliases import resolve_alias


class Subagents:
    """Makes the subagents of an agent by the names of their definitions (`AgentRecord.subagent`).

    It opens the models that they name when they are first used, and closes them.
    """

    def __init__(
        self, defined: Mapping[str, AgentFile], config: Config, *, environ: Mapping[str, str], clock: Clock
    ) -> None:
        self.described = {name: each.description for name, each in defined.items()}
        self._defined = defined
        self._config = config
        self._environ = environ
        self._clock = clock
        self._models: dict[str, KnownModel] = {}

    def record(self, agent: AgentRecord, name: str) -> AgentRecord:
        """The subagent of that name, or one like `agent`. Raises ToolRefused for an unknown name, else ConfigError."""
        if not name:
            return agent
        if name not in self._defined:
            known = ", ".join(self._defined) or "none"
            raise ToolRefused(f"there is no subagent {name!r}; available: {known}. Without a name it is one like you")
        given = self._defined[name]
        tools = agent.tools
        if given.tools is not None:
            kept = _named(given.tools, tools)
            tools = Toolset([*agent.actions.extra_tools(kept), *kept])
        model = self._model(given.model) if given.model else agent.model
        names, limits = [tool.name for tool in tools.listed], agent.limits
        prompt = agent.prompt.for_agent(tools=names, model=model.name, instructions=given.prompt)
        limits = replace(
            limits,
            iterations=min(given.iterations or limits.iterations, limits.iterations),
            subagent_seconds=60 * given.minutes if given.minutes else limits.subagent_seconds,
        )
        return replace(agent, tools=tools, model=model, prompt=prompt, limits=limits)

    def with_model(self, agent: AgentRecord, name: str) -> AgentRecord:
        """The agent with another model. Raises ConfigError."""
        model = self._model(name)
        prompt = agent.prompt.for_agent(tools=[tool.name for tool in agent.tools.listed], model=model.name)
        return replace(agent, model=model, prompt=prompt)

    def _model(self, name: str) -> KnownModel:
        if name not in self._models:
            config = msgspec.structs.replace(self._config, model=name)
            self._models[name] = open_model(config, environ=self._environ, clock=self._clock)
        return self._models[name]

    async def close(self) -> None:
        """Close the models that were opened."""
        while self._models:
            await self._models.popitem()[1].close()


def _named(names: Sequence[str], tools: Toolset) -> list[Tool]:
    """The tools with these names, or with the names that other programs use for them."""
    found = (tools.get(name) or tools.get(resolve_alias(name, tools)) for name in names)
    return [*{tool.name: tool for tool in found if tool}.values()]
