"""The tools that the tests of recovery offer, and one call in many forms."""

from typing import Any, Final

from denizen.actions import Recovered, recover_calls


def _tool(name: str, **properties: Any) -> dict[str, Any]:
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": [*properties][:1]}}


STRING: Final = {"type": "string"}
TOOLS: Final = [
    _tool("read", path=STRING, lines={"type": "integer"}),
    _tool("bash", command=STRING),
    _tool("clock"),
]

JSON: Final = '{"name": "bash", "arguments": {"command": "ls"}}'
HERMES: Final = f"<tool_call>{JSON}</tool_call>"
QWEN: Final = "<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>"
FORMS: Final = {
    "hermes": HERMES,
    "qwen": QWEN,
    "qwen in marks": f"<tool_call>\n{QWEN}\n</tool_call>",
    "mistral": '[TOOL_CALLS]bash[ARGS]{"command": "ls"}',
    "mistral list": f"[TOOL_CALLS][{JSON}]",
    "llama": f"<|python_tag|>{JSON}",
    "pythonic": "[bash(command='ls')]",
    "lfm": "<|tool_call_start|>[bash(command='ls')]<|tool_call_end|>",
    "gemma": '<|tool_call>call:bash{command:<|"|>ls<|"|>}<tool_call|>',
    "functiongemma": "<start_function_call>call:bash{command:<escape>ls<escape>}<end_function_call>",
    "deepseek": (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>bash<｜tool▁sep｜>{"command": "ls"}<｜tool▁c'
        "all▁end｜><｜tool▁calls▁end｜>"
    ),
    "deepseek markup": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="bash">\n<｜DSML｜parameter name="command" string="true">ls'
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"
    ),
    "kimi": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>"
        '{"command": "ls"}<|tool_call_end|><|tool_calls_section_end|>'
    ),
    "glm": "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>",
    "minimax": (
        '<minimax:tool_call><invoke name="bash"><parameter name="command">ls</parameter></invoke></minimax:tool_call>'
    ),
    "minimax 3": (
        ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="bash">]<]minimax[>[<command>ls]<]minimax[>[</command>'
        "]<]minimax[>[</invoke>]<]minimax[>[</tool_call>"
    ),
    "harmony": '<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{"command": "ls"}<|call|>',
    "cohere": (
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "bash", "parameters": {"command": "ls"}}]<|END_ACTION|>'
    ),
    "functionary": '>>>bash\n{"command": "ls"}',
    "functionary 3.1": '<function=bash>{"command": "ls"}</function>',
    "phi": f"functools[{JSON}]",
    "granite": f"<function_call> {JSON}",
    "apertus": '<|tools_prefix|>[{"bash": {"command": "ls"}}]<|tools_suffix|>',
    "marks of one's own": f"[TOOL_REQUEST]{JSON}[END_TOOL_REQUEST]",
    "call": "<call:bash(command='ls')>",
    "TOOL": 'TOOL: bash(command="ls")',
    "bare": "bash(command='ls')",
    "call:": "call:bash{command:ls}",
    "tool_call:": "tool_call:bash(command='ls')",
    "tool_code:": 'tool_code:bash{command:<|"|>ls<|"|>}',
    "tool_use:": "tool_use:bash(command='ls')",
    "TOOL_CALL:": "TOOL_CALL: bash(command='ls')",
    "object": JSON,
    "list of calls": '{"tool_calls": [{"function": "bash", "args": {"command": "ls"}}]}',
    "list of names": '{"tool_calls": [{"name": "bash", "arguments": "{\\"command\\": \\"ls\\"}"}]}',
    "function": '{"function": "bash", "arguments": {"command": "ls"}}',
    "tool_name": '{"tool_name": "bash", "args": {"command": "ls"}}',
    "as the provider's": (
        '{"id": "1", "type": "function", "function": {"name": "bash", "arguments": "{\\"command\\": \\"ls\\"}"}}'
    ),
    "fence": f"```json\n{JSON}\n```",
    "fence of a list": '```json\n{"tool_calls": [{"name": "bash", "args": {"command": "ls"}}]}\n```',
    "fence with marks": f"```\n{HERMES}\n```",
    "tool_code": "```tool_code\nbash(command='ls')\n```",
    "printed": "```tool_code\nprint(default_api.bash(command='ls'))\n```",
    "llama's own": '<|python_tag|>bash.call(command="ls")',
    "antml": '<function_calls><invoke name="bash"><parameter name="command">ls</parameter></invoke></function_calls>',
    "tool_use": '<tool_use>{"name": "bash", "input": {"command": "ls"}}</tool_use>',
    "react": 'Action: bash\nAction Input: {"command": "ls"}',
    "flat": '```tool_code\n{"tool": "bash", "command": "ls"}\n```',
}

SHOWN: Final = ("fence", "fence of a list", "fence with marks")
"""Forms that next to words only show how a call looks."""


def recover(text: str) -> Recovered:
    """What the text holds, with those tools."""
    return recover_calls(text, TOOLS)


def called(text: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls of the text."""
    return [(call.name, call.args) for call in recover(text).calls]
