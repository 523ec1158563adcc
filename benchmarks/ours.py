"""Denizen's own driver: the library as a program uses it, one agent for all sessions."""

import dataclasses
import gc
import os
import stat
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from itertools import count as counter
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks.driver import Command, Figures, Stage, Turn, main
from benchmarks.scene import ANSWER, CHUNKS, CITY, GEMINI_PATH, KEY, MODEL, PER_TURN, QUESTION, TOOL_NAME
from denizen import Agent, Config, run_agent, tool
from denizen.config.settings import AuthProfileSettings, ProviderSettings
from denizen.engine import TurnOptions, run_turn, state_of
from denizen.engine.callback_host import CallbackHost
from denizen.events import Finished, RunEvent, StreamEvent
from denizen.messages import AssistantMessage, Text, ToolCall, UserMessage
from denizen.ports import Limits, Model, ModelRequest, Session, Traits
from denizen.sessions import JsonlStore

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

WIRES = {"/chat/completions": "openai", "/messages": "anthropic", "/responses": "responses", GEMINI_PATH: "google"}


class Scripted:
    """A model in the process: a call of the tool, the answer, and again."""

    name = "test:scripted"
    local = True

    def __init__(self) -> None:
        call = AssistantMessage([ToolCall("call-1", TOOL_NAME, {"city": CITY})], self.name, stop_reason="tool_calls")
        self._lines = cycle([call, AssistantMessage([Text(ANSWER)], self.name)])

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield Finished(next(self._lines))

    def limits(self, session_key: str = "") -> Limits:
        return Limits(window=10**9)

    async def close(self) -> None:
        pass


class Denizen:
    """`disk` and `synced` are `run_agent` with an agent made once: it opens and closes the session in every turn.

    `open` keeps the session open, as hosts do, and so does `scripted`, whose model is in the process. Only `synced`
    syncs; it is the agent as it comes.
    """

    stores: Sequence[str] = ("synced", "disk", "open")

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._agents: dict[str, Agent] = {}
        self._numbers = counter()
        self._long: dict[int, Path] = {}

    def _agent_of(self, name: str) -> Agent:
        """The agent of a store, or of a wire format's path; made when it is first asked for."""
        if name not in self._agents:
            self._agents[name] = self._made(name)
        return self._agents[name]

    def _made(self, name: str) -> Agent:
        if name in WIRES:
            return self._unsynced(f"words-{WIRES[name]}", wire=WIRES[name])
        if name == "synced":
            return self._agent(name)
        return self._unsynced(name, model=Scripted() if name == "scripted" else None)

    def _unsynced(self, name: str, *, wire: str = "openai", model: Model | None = None) -> Agent:
        agent = self._agent(name, wire=wire, model=model)
        agent.record = dataclasses.replace(agent.record, store=_unsynced_store(agent))
        return agent

    def _agent(self, name: str, *, wire: str = "openai", model: Model | None = None) -> Agent:
        @tool(traits=Traits.READS | Traits.REPEATABLE)
        async def weather(city: str) -> str:
            """Look up the weather of a city."""
            return self._stage.weather.look_up(city)

        return Agent(self._config(name, wire), tools=[weather], model=model)

    def _config(self, name: str, wire: str) -> Config:
        provider = "openai" if wire == "responses" else wire
        home, url = self._stage.home / name, self._stage.base_url
        (home / "work").mkdir(parents=True)
        settings = ProviderSettings(
            api="responses" if wire == "responses" else "",
            base_url=url.replace("/scene/", "/words/") if name.startswith("words") else url,
            auth_profiles=[AuthProfileSettings(id="bench", api_key=KEY)],
        )
        return Config(model=f"{provider}:{MODEL}", providers={provider: settings}, home=home, workspace=home / "work")

    async def open(self, key: str, store: str) -> Turn:
        agent = self._agent_of(store)
        return _hosted(agent, await agent.open(key)) if store in {"open", "scripted"} else _called(agent, key)

    async def syncs(self) -> Figures:
        """How often one turn of `synced` brings a file (not a folder) to the disk."""
        files: list[object] = []
        fsync = os.fsync

        def counting(fd: "FileDescriptorLike") -> None:
            if isinstance(fd, int) and stat.S_ISREG(os.fstat(fd).st_mode):
                files.append(fd)
            fsync(fd)

        os.fsync = counting
        await _called(self._agent_of("synced"), "synced-once")(QUESTION)
        os.fsync = fsync
        return {"syncs": len(files)}

    async def words(self, path: str, count: int) -> Figures:
        """CPU microseconds per chunk of a streamed reply, every event of the model taken."""
        model = self._agent_of(path).model
        request = ModelRequest([UserMessage([Text(QUESTION)])], stream=True)

        async def stream() -> int:
            return len([event async for event in model.stream(request)])

        return await _per_chunk(stream, count)

    async def turn_of_words(self, path: str, count: int) -> Figures:
        """CPU microseconds per chunk of a session's second turn, which only streams one reply into a transcript."""
        agent = self._agent_of(path)
        keys = [f"words-{next(self._numbers)}" for _ in range(count)]

        async def turn(key: str) -> int:
            events: list[RunEvent] = []
            await run_agent(QUESTION, session_key=key, agent=agent, on_event=events.append)
            return len(events)

        for key in keys:
            await turn(key)
        begun = iter(keys)
        return await _per_chunk(lambda: turn(next(begun)), count)

    async def reopen(self, messages: int) -> Figures:
        """CPU milliseconds of opening a session of so many messages, up to what its first request will say.

        `cpu_ms` is for who hasn't seen it, `again_ms` for who closed it a moment ago.
        """
        path = self._long.get(messages) or await self._written(messages)
        self._long[messages] = path
        self._forget()
        cpu_ms, _ = await self._opening(messages)
        again_ms, _ = await self._opening(messages)
        self._forget()
        tracemalloc.start()
        _, held = await self._opening(messages)
        tracemalloc.stop()
        by_hand_ms, mb = _decoding_ms(path), held / 2**20
        return {
            "cpu_ms": cpu_ms,
            "again_ms": again_ms,
            "by_hand_ms": by_hand_ms,
            "mb": mb,
            "bytes": path.stat().st_size,
        }

    def _forget(self) -> None:
        """Make it know its sessions no better than a new process does."""
        agent = self._agent_of("scripted")
        agent.record = dataclasses.replace(agent.record, store=_unsynced_store(agent))

    async def _written(self, messages: int) -> Path:
        agent, key = self._agent_of("scripted"), f"long-{messages}"
        session = await agent.open(key)
        turn = _hosted(agent, session)
        for _ in range(messages // PER_TURN):
            await turn(QUESTION)
        await session.close()
        [path] = agent.home.rglob(f"*{key}.jsonl")
        return path

    async def _opening(self, messages: int) -> tuple[float, int]:
        """CPU milliseconds, and the bytes that the open session holds where memory is traced."""
        gc.collect()
        cpu, (memory, _) = time.process_time(), tracemalloc.get_traced_memory()
        session = await self._agent_of("scripted").open(f"long-{messages}")
        state_of(self._agent_of("scripted").record, session)
        cpu_ms = (time.process_time() - cpu) * 1e3
        held = tracemalloc.get_traced_memory()[0] - memory
        await session.close()
        return cpu_ms, held


def _unsynced_store(agent: Agent) -> JsonlStore:
    return JsonlStore(agent.home / "sessions", clock=agent.clock, redactor=agent.record.redactor, sync=False)


def _called(agent: Agent, key: str) -> Turn:
    async def turn(text: str) -> str:
        return (await run_agent(text, session_key=key, agent=agent)).reply

    return turn


def _hosted(agent: Agent, session: Session) -> Turn:
    host, options = CallbackHost(), TurnOptions(stream=False)

    async def turn(text: str) -> str:
        return (await run_turn(agent.record, session, UserMessage([Text(text)]), host, options)).reply

    return turn


def _decoding_ms(path: Path) -> float:
    """CPU milliseconds of reading a transcript by hand."""
    gc.collect()
    cpu = time.process_time()
    lines = msgspec.json.Decoder().decode_lines(path.read_bytes())
    assert lines
    return (time.process_time() - cpu) * 1e3


async def _per_chunk(stream: Callable[[], Awaitable[int]], count: int) -> Figures:
    cpu = time.process_time()
    for _ in range(count):
        assert await stream() >= CHUNKS
    return {"cpu_us": (time.process_time() - cpu) * 1e6 / count / CHUNKS}


async def build(stage: Stage) -> Denizen:
    return Denizen(stage)


def extra(denizen: Denizen) -> Mapping[str, Command]:
    commands = (denizen.syncs, denizen.words, denizen.turn_of_words, denizen.reopen)
    return {command.__name__: command for command in commands}


if __name__ == "__main__":
    main(build, extra)
