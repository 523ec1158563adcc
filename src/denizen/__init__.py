"""Denizen: one agent engine for the places an agent can live in."""

# imports nothing: of `python -m denizen`, the first folder that modules are looked for in is still the current one
TYPE_CHECKING = False

if TYPE_CHECKING:
    from denizen.config import Config, load_config
    from denizen.events import RunResult
    from denizen.tools import tool
    from denizen.worlds.assemble import Agent
    from denizen.worlds.run import run_agent, run_agent_sync, stream_agent

__version__ = "0.2.0"
__all__ = [
    "Agent",
    "Config",
    "RunResult",
    "load_config",
    "run_agent",
    "run_agent_sync",
    "stream_agent",
    "tool",
]

_HOMES = {
    "Agent": "denizen.worlds.assemble",
    "Config": "denizen.config",
    "RunResult": "denizen.events",
    "load_config": "denizen.config",
    "run_agent": "denizen.worlds.run",
    "run_agent_sync": "denizen.worlds.run",
    "stream_agent": "denizen.worlds.run",
    "tool": "denizen.tools",
}


def __getattr__(name: str) -> object:
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module 'denizen' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
