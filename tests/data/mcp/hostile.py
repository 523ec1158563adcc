"""An MCP server by hand, of the standard library alone, that does harm in the way its argument says.

Its tools are in the file that the variable TOOLS names, if it is set; its instructions are its second argument, or those of
INSTRUCTIONS; it writes its process id to the file PID.
"""

import json
import os
import subprocess
import sys
import time
from typing import Any

HARM = sys.argv[1] if len(sys.argv) > 1 else ""
TOOL = {"name": "work", "description": "Do the work.", "inputSchema": {"type": "object", "properties": {}}}


changed: list[bool] = []

capabilities: set[str] = set()
"""Those of the client."""

later: list[dict[str, Any]] = []
"""What came while an answer was waited for."""


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tools() -> list[dict[str, Any]]:
    if path := os.environ.get("TOOLS"):
        with open(path) as file:
            return json.load(file)
    return [TOOL]


def listed(params: dict[str, Any]) -> dict[str, Any]:
    if HARM == "bulky":  # more than can be kept
        first = 0 if "cursor" not in params else 200
        names = [f"work{number}" for number in range(first, first + 200)]
        more = {} if first else {"nextCursor": "200"}
        return {"tools": [{**TOOL, "name": name, "description": "x" * 45_000} for name in names], **more}
    if HARM == "endless":  # pages without an end
        number = int(params.get("cursor") or 0)
        return {"tools": [{**TOOL, "name": f"work{number}"}], "nextCursor": str(number + 1)}
    return {"tools": tools()}


def ask(number: int, method: str, **params: Any) -> None:
    """A question to the client, while the call waits."""
    say(id="q1", method=method, params=params)
    while "result" not in (answer := json.loads(sys.stdin.readline())) or answer["id"] != "q1":
        later.append(answer)
    say(id=number, result={"content": [{"type": "text", "text": json.dumps(answer["result"])}]})


def call(number: int, params: dict[str, Any]) -> None:
    match HARM:
        case "dies":
            sys.stderr.write("a wheel came off\n")
            sys.exit(3)
        case "stalls":
            return
        case "floods":
            while True:
                sys.stdout.write("x" * 1_000_000)
        case "large":
            say(id=number, result={"content": [{"type": "text", "text": "x" * 200_000}]})
        case "changes":  # and doesn't say to what
            say(method="notifications/tools/list_changed")
            say(id=number, result={"content": []})
            changed.append(True)
        case "odd":
            say(id=number, result={"content": "not a list"})
        case "asks":
            schema = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
            ask(number, "elicitation/create", message="How large?", requestedSchema=schema)
        case "roots" if "roots" not in capabilities:
            say(id=number, result={"content": [{"type": "text", "text": '"not offered"'}]})
        case "roots":
            ask(number, "roots/list")
        case _:
            text = json.dumps({"args": params.get("arguments"), "environ": sorted(os.environ), "cwd": os.getcwd()})
            say(id=number, result={"content": [{"type": "text", "text": text}]})


def main() -> None:
    if path := os.environ.get("PID"):
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)  # that outlives whoever doesn't look for it
        with open(path, "a") as file:
            file.write(f"{os.getpid()} {child.pid}\n")
    match HARM:
        case "silent":
            time.sleep(600)
        case "noise":
            while True:
                print("Listening on port 80", flush=True)
                time.sleep(0.001)
        case "ends":
            sys.exit("no licence found")
        case _:
            pass
    print("A line that is no message", flush=True)
    for line in sys.stdin:
        later.append(json.loads(line))
        while later:
            serve(later.pop(0))


def serve(message: dict[str, Any]) -> None:
    number, params = message.get("id"), message.get("params") or {}
    match message.get("method"):
        case "initialize":
            capabilities.update(params["capabilities"])
            info = {"name": "hostile", "version": "1"}
            version = params["protocolVersion"]
            can: dict[str, Any] = {"tools": {}} | ({"resources": {}, "prompts": {}} if HARM == "boasts" else {})
            instructions = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("INSTRUCTIONS")
            words = {} if instructions is None else {"instructions": instructions}
            say(id=number, result={"protocolVersion": version, "capabilities": can, "serverInfo": info, **words})
        case "tools/list" if changed:
            say(id=number, error={"code": -32603, "message": "not now"})
        case "tools/list":
            say(id=number, result=listed(params))
        case "tools/call":
            call(number, params)
        case _ if number is not None:
            say(id=number, error={"code": -32601, "message": "no such method"})


main()
