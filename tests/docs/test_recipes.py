"""The recipes work: the web services behind a real server, the tests as pytest runs them."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvicorn
from docs.examples.host import refund
from docs.examples.recipes import approvals, chat_service
from docs.examples.tool import stock
from fastapi import FastAPI
from tests.docs.pages import DOCS, blocks

from denizen import Agent
from denizen.messages import AssistantMessage, ToolCall
from denizen.ports import Tool
from denizen.testing import ScriptedModel

RECIPES = DOCS / "recipes.md"


@pytest.fixture
def environment(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DENIZEN_HOME", environ["DENIZEN_HOME"])


@asynccontextmanager
async def served(app: FastAPI) -> AsyncGenerator[aiohttp.ClientSession]:
    """A client of the app, which uvicorn serves on loopback."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        serving = asyncio.create_task(server.serve([listening]))
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
                yield client
        finally:
            server.should_exit = True
            await serving


def calls(name: str, **args: Any) -> AssistantMessage:
    return AssistantMessage([ToolCall("1", name, args)], stop_reason="tool_calls")


def agent(model: ScriptedModel, *tools: Tool) -> Agent:
    return Agent(tools=tools, model=model)


def shown(number: int) -> str:
    """What the page says that its commands print."""
    return blocks(RECIPES, "text")[number].text


@pytest.mark.usefixtures("environment")
async def test_chat_service_streams_what_the_page_shows() -> None:
    model = ScriptedModel([calls("stock", article="lamp"), "Seven lamps."])
    async with served(chat_service.create_app(agent(model, stock))) as client:
        answer = await client.post("/chat", json={"chat": "ann", "text": "Do you have lamps?"})
        assert answer.content_type == "text/event-stream"
        assert (await answer.text()).strip() == shown(0).strip()


@pytest.mark.usefixtures("environment")
async def test_chat_service_reports_a_failure_as_an_event() -> None:
    async with served(chat_service.create_app(agent(ScriptedModel([])))) as client:
        answer = await client.post("/chat", json={"chat": "ann", "text": "Hello"})
        assert "event: error\ndata: " in await answer.text()


@pytest.mark.usefixtures("environment")
async def test_chat_service_takes_no_other_sessions_names() -> None:
    async with served(chat_service.create_app(agent(ScriptedModel([])))) as client:
        answer = await client.post("/chat", json={"chat": "agent:main:other", "text": "Hello"})
        assert answer.status == 422


@pytest.mark.usefixtures("environment")
async def test_approval_continues_the_turn_and_counts_for_the_call_that_was_shown() -> None:
    question, reply = shown(2).splitlines()
    model = ScriptedModel([calls("refund", order=7), "You get it back."])
    async with served(approvals.create_app(agent(model, refund))) as client:
        parked = await client.post("/cases/7", params={"text": "My money back!"})
        assert await parked.text() == question
        call_id = (await parked.json())["call_id"]
        other = await client.post("/cases/7/decision", json={"call_id": "call_9_9", "allow": True})
        assert await other.text() == question
        answered = await client.post("/cases/7/decision", json={"call_id": call_id, "allow": True})
        assert await answered.text() == reply


@pytest.mark.usefixtures("environment")
async def test_approval_survives_a_restart_and_a_no_runs_nothing() -> None:
    model = ScriptedModel([calls("refund", order=8), "Then not."])
    async with served(approvals.create_app(agent(model, refund))) as client:
        question = await (await client.post("/cases/8", params={"text": "My money back!"})).json()
    async with served(approvals.create_app(agent(model, refund))) as client:
        no = {"call_id": question["call_id"], "allow": False, "reason": "not ours"}
        assert await (await client.post("/cases/8/decision", json=no)).json() == {"reply": "Then not."}
    assert "not ours" in model.requests[1].messages[-1].text


def test_tests_of_the_recipe_pass(environ: dict[str, str], tmp_path: Path) -> None:
    recipe = tmp_path / "test_refunds.py"
    recipe.write_text((DOCS / "examples" / "recipes" / "test_refunds.py").read_text("utf-8"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(recipe)]
    ran = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert "4 passed" in ran.stdout, ran.stdout
