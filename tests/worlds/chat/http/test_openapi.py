"""The description of the routes, and what arbitrary requests of its form do to them."""

import asyncio
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance
from tests.engine.scene import call, say
from tests.worlds.chat.conftest import Serve
from tests.worlds.chat.http.test_http import reached

from denizen.worlds.chat.http.token import read_token

CHECKS = [not_a_server_error, response_schema_conformance, status_code_conformance]
EXAMPLES = 12
"""Requests for each route."""


async def test_description_covers_every_route(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client:
        status, described = await client.ask("GET", "/openapi.json")
    assert status == 200
    assert {path: sorted(operations) for path, operations in described["paths"].items()} == {
        "/api/events": ["get"],
        "/api/jobs": ["get", "post"],
        "/api/messages": ["post"],
        "/api/pairings": ["get", "post"],
        "/api/replies": ["get"],
        "/api/search": ["get"],
        "/api/sessions": ["get"],
        "/api/sessions/{key}": ["get"],
        "/api/sessions/{key}/context": ["get"],
        "/api/sessions/{key}/controls": ["post"],
        "/api/sessions/{key}/diff": ["get"],
        "/api/sessions/{key}/fork": ["post"],
        "/api/sessions/{key}/queue": ["get", "post"],
        "/api/sessions/{key}/redo": ["get", "post"],
        "/api/sessions/{key}/undo": ["get", "post"],
        "/api/sign-in": ["post"],
        "/api/sign-in-links": ["post"],
        "/api/sign-out": ["post"],
        "/api/status": ["get"],
        "/api/token": ["post"],
        "/api/usage": ["get"],
        "/api/waiting": ["get"],
        "/healthz": ["get"],
        "/metrics": ["get"],
        "/openapi.json": ["get"],
        "/readyz": ["get"],
        "/v1/chat/completions": ["post"],
        "/v1/models": ["get"],
        "/v1/models/{id}": ["get"],
        "/v1/responses": ["post"],
    }
    assert described["paths"]["/healthz"]["get"]["security"] == []
    assert described["components"]["schemas"]["NewMessage"]["required"] == ["chat", "sender", "content"]


async def test_arbitrary_requests_break_no_route(serve: Serve, home: Path) -> None:
    async with serve(*["well"] * 2000) as scene, reached(scene, home) as client:
        _, described = await client.ask("GET", "/openapi.json")
        del described["paths"]["/api/token"]
        described["paths"]["/api/replies"]["get"]["parameters"].pop()  # it would wait
        await asyncio.to_thread(_try_all, described, client.url, read_token(home))
        assert (await client.ask("GET", "/healthz"))[0] == 200


def _try_all(described: dict[str, Any], url: str, token: str) -> None:
    routes = schemathesis.openapi.from_dict(described)
    tried = 0
    for found in routes.get_all_operations():
        operation: Any = found.ok()  # pyrefly: ignore[missing-attribute]
        takes = described["paths"][operation.path][operation.method]
        wrong = [schemathesis.GenerationMode.NEGATIVE] if takes["parameters"] or "requestBody" in takes else []
        for mode in (schemathesis.GenerationMode.POSITIVE, *wrong):

            @settings(
                max_examples=EXAMPLES,
                derandomize=True,
                database=None,
                deadline=None,
                suppress_health_check=[*HealthCheck],
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def hold(case: Any) -> None:
                nonlocal tried
                tried += 1
                response = case.call(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60)
                if response.status_code == 502 and "isn't what was asked for" in response.text:
                    return  # asked for JSON, which this model doesn't write
                case.validate_response(response, checks=CHECKS)

            hold()
    assert tried > EXAMPLES


async def test_metrics_count_what_happened(serve: Serve, home: Path) -> None:
    script = (call(("look", {}), input=5, output=2), say("nothing", input=7, output=1))
    async with serve(*script) as scene, reached(scene, home) as client:
        await client.post(id="1")
        await scene.contents(1)
        text = await client.text("/metrics")
    for line in (
        'denizen_turns_total{stop_reason="answered"} 1',
        "denizen_model_calls_total 2",
        'denizen_tokens_total{kind="input"} 12',
        'denizen_tool_calls_total{failed="false"} 1',
        'denizen_messages_total{state="done"} 1',
        "# TYPE denizen_open_requests gauge",
        "# TYPE denizen_turn_seconds histogram",
        'denizen_turn_seconds_bucket{le="+Inf"} 1',
        "denizen_turn_seconds_count 1",
        'denizen_request_seconds_bucket{method="POST",route="/api/messages",le="+Inf"} 1',
        'denizen_request_seconds_count{method="POST",route="/api/messages"} 1',
    ):
        assert line in text.splitlines()
