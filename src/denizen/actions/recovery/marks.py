"""The marks that model families put around calls, thoughts and answers.

`OPENS` and `CLOSES` are around calls and carry no meaning of their own: a call is recognised by its form, whatever its
marks are, so that a missing or a doubled mark loses nothing.
"""

from typing import Final

from denizen.config.pattern import pattern

BAR: Final = "[|｜]"
"""The bar of special tokens: DeepSeek's is another character."""

NAME: Final = r"[^\W\d][\w.-]{0,127}"
"""The name of a tool."""

CALLED: Final = r"(?:call|tool_call|tool_code|tool_use|TOOL_CALL|TOOL)\s?"
"""What begins a line that is a call, before a colon."""

ACTION: Final = "Action ?: ?"
"""What begins a line that names a tool, as ReAct has it."""

LABEL: Final = rf"(?:{ACTION}|{CALLED}:)"
"""What says of the fence that follows it that it is a call."""

OBJECT: Final = r"[{\[](?=\s{0,99}[{\[\"'])"
"""Where an object, or a list of them, may begin."""

INDENT: Final = r"[ \t]{0,40}(?:(?:[-*+]|\d{1,3}[.)])[ \t]{1,9})?"
"""What a line may have before a fence or a quotation."""

FENCE: Final = rf"{INDENT}(?P<label>{LABEL}\s{{0,9}})?(?P<ticks>`{{3,}}|~{{3,}})"
"""How a fence begins, after a label perhaps."""

INFO: Final = pattern(
    r"[ \t]{0,9}(?:(?i:json|xml|tool_?(?:code|calls?|use)|tool|function_?calls?|action))?[ \t]{0,9}\n"
)
"""The rest of the first line of a fence that may hold calls."""

CALL_INFO: Final = pattern(r"\s*(?i:tool_?(?:code|calls?|use)|tool|function_?calls?|action)\s*")
"""The rest of the first line of a fence that says that it holds calls."""

CALLS: Final = r"(?:longcat_|dots_)?(?:tool|function)_?calls?|tool_code|tool_use"
_NAMESPACE: Final = r"(?:[\w-]{1,20}[:|]|｜DSML｜)?"
_LETTERS: Final = r"[\w▁]{0,40}"
_MINIMAX: Final = r"(?:\]<\]minimax\[>\[)?"

OPENS: Final = (
    rf"{_MINIMAX}<{_NAMESPACE}(?i:{CALLS})>"
    rf"|<{BAR}(?:tool|function|action|plugin|interpreter|python|START_ACTION)(?!{_LETTERS}"
    rf"(?:response|result|output|end|suffix|END|sep|argument)){_LETTERS}{BAR}?>"
    r"|<start_function_call>"
    r"|\[TOOL_CALLS?\]"
    r"|\[TOOL_REQUEST\]"
    r"|\bfunctools(?=\[)"
    r"|\bfunction call<\|role_sep\|>"
    rf"|\bfunction<{BAR}tool[_▁]sep{BAR}>"
    r"|<\|message_sep\|>"
    r"|<\|open\|>\s?tools\s?<\|sep\|>"
)
"""What begins one call or several."""

CLOSES: Final = (
    rf"{_MINIMAX}</{_NAMESPACE}(?i:{CALLS})>"
    r"|</(?:function|invoke)>"
    rf"|<{BAR}(?:tool|function|action|python|END_ACTION)(?!{_LETTERS}(?:response|result|output|sep|argument)){_LETTERS}"
    rf"(?:end|suffix)?{BAR}>"
    r"|<(?:tool_call|turn)\|>"
    r"|<end_function_call>"
    r"|<end_of_turn>"
    r"|\[/TOOL_CALLS?\]"
    r"|\[END_TOOL_REQUEST\]"
    r"|<\|(?:im_end|eot_id|eom_id|end|call|return|eot|eom|role_end|endoftext|END_OF_TURN_TOKEN)\|>"
    r"|<｜end▁of▁sentence｜>"
    r"|</s>"
    r"|\[e~\["
    r"|<\|close\|>\s?(?:call|tools|message)\s?<\|sep\|>"
)
"""What ends them, or the reply."""

THOUGHTS: Final = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "<mm:think>": "</mm:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|channel>thought": "<channel|>",
    "<|open|>think<|sep|>": "<|close|>think<|sep|>",
}
"""What begins a thought, and what ends it."""

ANSWERS: Final = r"<\|START_(?:RESPONSE|TEXT)\|>|<\|open\|>\s?response\s?<\|sep\|>"
"""What begins the answer, and so ends a thought."""

FINAL: Final = "[BEGIN FINAL RESPONSE]"
"""What ends the thoughts of a model that has no mark for their beginning."""

FRAMES: Final = (
    r"<\|(?:open|close)\|>\s?(?:response|message|tools|call)[^<>\n]{0,80}<\|sep\|>|<\|END_(?:RESPONSE|TEXT)\|>"
)
"""Marks around an answer, which aren't part of it."""

HEADS: Final = pattern(
    r"\s{0,9}(?:(?:"
    r"<\|im_start\|>assistant|<\|start_header_id\|>assistant<\|end_header_id\|>|<start_of_turn>model|<\|turn>model"
    r"|<\|start_of_role\|>assistant<\|end_of_role\|>|<seed:bos>assistant|<\|im_assistant\|>assistant<\|im_middle\|>"
    r"|<role>ASSISTANT</role>|\]~b\]ai|<SPECIAL_11>Assistant|assistant<\|role_sep\|>|assistant:|<\|begin_assistant\|>"
    r"|<\|assistant(?:_start)?\|>|<｜Assistant｜>|<｜start▁of▁sentence｜><\|Bot\|>"
    r"|<\|START_OF_TURN_TOKEN\|><\|CHATBOT_TOKEN\|>|>>>all(?=\n)"
    r")\s{0,9}){1,3}"
)
"""The head of the model's own turn, which some servers leave in the text."""

OTHERS: Final = (
    r"<\|im_start\|>(?!assistant)\w"
    r"|<\|start_header_id\|>(?!assistant)\w"
    r"|<start_of_turn>(?!model)\w"
    r"|<\|turn>(?!model)\w"
    r"|<\|start_of_role\|>(?!assistant)\w"
    r"|<\|(?i:user|observation|system|tool|tool_response|START_TOOL_RESULT)\|?>"
    r"|<｜User｜>|<｜tool[▁_]outputs?"
    r"|\[INST\]|\[TOOL_RESULTS?\]|\[TOOL_RESPONSE\]"
    r"|^(?:Result of [\w.-]{1,128}|(?i:observation|human|user)) ?:"
)
"""What begins the words of another: a turn that the model made up, or a result that it repeats."""

QUOTES: Final = (
    r"<!--|<(?P<quote>(?:tool|function|search|command)_(?:response|result|output)s?|results?|outputs?|observations?"
    r"|page|webpage|web_page|website|document|documents|file_content|email|user|user_message|message|context|stdout"
    r"|stderr|system|article|quote|blockquote|example|examples|code|pre|content|untrusted[\w-]{0,40})"
    r"(?: [^<>\n]{0,200})?>"
)
"""Elements that hold what another said."""
