"""Names that models use for tools that have another name here: those of other agents' tools, and shell programs."""

import functools
from collections.abc import Container, Mapping, Sequence
from typing import Final

_ALIASES: Final = {
    "read view": "cat get_file_contents head less load_file more nl open open_file read read_file read_many_files show "
    "show_file tail text_editor view_code_item view_file",
    "ls view": "dir list list_dir list_directory list_files list_folder ls tree",
    "view": "definition find_symbol go_to_definition goto list_code_definition_names outline skeleton symbol symbols",
    "find": "fd file_search find_by_name find_file find_files glob locate",
    "grep": "ack ag codebase_search egrep grep_search rg ripgrep search search_code search_dir search_file "
    "search_file_content search_files search_text text_search",
    "edit": "edit_file multi_edit replace replace_file_content replace_in_file replace_text search_and_replace "
    "search_replace str_replace str_replace_based_edit_tool str_replace_editor string_replace substitute update_file",
    "write": "create create_file new_file save save_file touch write_file write_to_file",
    "apply_patch": "apply_diff diff_apply patch",
    "bash": "awk cargo cd chmod cmd command console cp delete_file echo exec exec_command execute execute_bash "
    "execute_command make mkdir move_file mv node npm npx pip pwd pytest python python3 rm run run_command "
    "run_shell_command run_terminal_cmd run_tests sed sh shell terminal test tests uv wc zsh",
    "git": "blame branch commit diff git_diff git_log git_show git_status log status",
    "web_fetch": "browse browser curl download fetch fetch_url get_url open_url visit wget",
    "web_search": "brave_search google google_search internet_search search_internet search_web websearch",
    "analyze": "callees callers complexity find_references hotspots imports lint references",
    "package": "dependencies deps packages requirements",
    "task": "plan tasks todo todo_read todo_write todos update_plan",
    "ask": "ask_followup_question ask_human ask_user question",
    "remember": "add_memory memory memory_write save_memory",
    "recall": "memory_search memory_read memories search_memory",
    "note": "scratchpad think thought",
    "checkpoint": "save_checkpoint snapshot",
    "rollback": "reset restore revert undo",
    "done": "answer attempt_completion complete exit final final_answer finish finished quit reply respond return stop "
    "submit",
    "help": "commands man usage",
}
"""The aliases by the tools that do the job; of several tools the first that exists is meant."""


def resolve_alias(name: str, known: Container[str]) -> str:
    """The tool among `known` that does what elsewhere is called `name`; empty if there is none."""
    return next((tool for tool in _by_alias().get(_normalized(name), ()) if tool in known), "")


@functools.cache
def _by_alias() -> Mapping[str, Sequence[str]]:
    return {_normalized(name): tools.split() for tools, names in _ALIASES.items() for name in names.split()}


def _normalized(name: str) -> str:
    """`ReadFile`, `read-file` and `read_file` are the same."""
    return "".join(filter(str.isalnum, name.lower()))
