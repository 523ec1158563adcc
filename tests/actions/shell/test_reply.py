"""Which commands a reply holds: those that a person sees there."""

import pytest
from tests.actions.shell.offer import args, read, run

VIEW = [("view", {"path": "x"})]


def test_commands_run_in_the_order_they_come_in() -> None:
    assert run("First $(view a)$(view b), then\n- $(grep c)") == [
        ("view", {"path": "a"}),
        ("view", {"path": "b"}),
        ("grep", {"pattern": "c"}),
    ]


def test_a_reply_without_a_command_is_the_answer_as_it_is() -> None:
    found = read("  It costs $5, or less.\n")
    assert (found.calls, found.reply) == ([], "  It costs $5, or less.\n")


@pytest.mark.parametrize(
    "reply",
    [
        "$(view x)",
        "I'll look: $(view x).",
        "1. $(view x)",
        "[1] $(view x)",
        "**$(view x)**",
        "($(view x))",
        "看$(view x)",
        "$( view x )",
        "$(\n  view\n  x\n)",
        "```\n$(view x)\n```",
        "```bash\n\n  $(view x)\n\n```\nThat is all.",
        "~~~\n$(view x)\n~~~",
        "```\n$(view x)",
        "- ```sh\n  $(view x)\n  ```",
        "`$(view x)`",
        "- `$(view x)`.",
        "`$(view x)`\r\n",
        "```\r\n$(view x)\r\n```\r\nSo much.",
        "<think>I could $(note it) or $(view y)</think>\n$(view x)",
    ],
)
def test_this_is_a_command(reply: str) -> None:
    assert run(reply) == VIEW


@pytest.mark.parametrize(
    "reply",
    [
        "I'd use `$(view x)` for that.",
        "Use ``$(view `x`)`` there",
        "```\nfirst:\n$(view x)\n```",
        "```\n$(view x)\nmain.rs\n```",
        "````\n```\n$(view x)\n```\n````",
        "~~~\n```\n$(view x)\n~~~",
        "> $(view x)",
        "  > then $(view x)",
        "NAME=$(view x)",
        'He wrote "$(view x)".',
        "Escaped: \\$(view x)",
        "$((view x))",
        "$(VIEW x)",
        "$(view.x)",
        "$()",
        "$x(view x)",
        "[1] $ view x\nThe $(view x) is in an output that is quoted.",
    ],
)
def test_this_is_none(reply: str) -> None:
    found = read(reply)
    assert found.calls == []
    assert found.reply == reply


def test_a_fence_with_a_document_may_hold_another_fence() -> None:
    reply = "```\n$(write R.md <<'END'\n```py\nx\n```\nEND\n)\n```"
    assert args(reply) == {"path": "R.md", "content": "```py\nx\n```\n"}


def test_the_text_around_the_commands_is_what_the_agent_says() -> None:
    found = read("Let me look.\n\n```\n$(view x)\n```\nThen I'll see.")
    assert found.reply == "Let me look.\n\n\nThen I'll see."


@pytest.mark.parametrize(
    "claim",
    [
        "[1] $ view x\nmain.rs",
        "\n[2] $ view y\nmain.rs",
        "Output:\nmain.rs",
        "**Output:**\n```\nmain.rs\n```",
        "Results of view x:\nmain.rs",
        "```\nmain.rs\n```",
        "> main.rs",
        "<output>main.rs</output>",
        "<function_results>\nmain.rs",
    ],
)
def test_a_made_up_output_is_cut_off_with_all_after_it(claim: str) -> None:
    found = read(f"Looking.\n$(view x)\n{claim}\n\nSo $(edit main.rs a b) and $(done It is main.rs)")
    assert [call.name for call in found.calls] == ["view"]
    assert found.kept_text == "Looking.\n$(view x)"
    assert "made up" in found.problems[0]
    assert not found.ends_turn


def test_one_in_a_fence_of_commands_makes_it_another_fence() -> None:
    assert run("```\n$(view x)\n[1] $ view x\nmain.rs\n$(edit main.rs a b)\n```") == []


def test_prose_and_fences_further_down_are_no_claims() -> None:
    found = read("$(note a)\nThis is the plan:\n```\nfirst\n```\n> a quotation\n$(view x)")
    assert [call.name for call in found.calls] == ["note", "view"]
    assert found.kept_text is None


def test_commands_after_a_quotation_of_outputs_are_reported_and_not_run() -> None:
    found = read("[1] $ view x\nmain.rs\n\n$(edit main.rs a b)")
    [call] = found.calls
    assert call.name == "edit"
    assert "not run" in str(call.args)


@pytest.mark.parametrize(
    "reply",
    [
        "$(view x",
        "$(view 'x)",
        '$(grep "a) $(view b)',
        "$(note a (b)",
        "```\n$(view x\n```",
        "$(view 'it\\'s')",
        "$(view 'a(\\'b\\')')",
    ],
)
def test_a_command_without_an_end_is_reported_and_not_run(reply: str) -> None:
    [call] = read(reply).calls
    assert "never closed" in str(call.args)


def test_nothing_after_one_is_run() -> None:
    found = read("$(view a)\n$(run echo '\n$(view b) $(done yes)")
    assert [call.name for call in found.calls] == ["view", "bash"]
    assert not found.ends_turn


def test_lines_of_comment_in_a_fence_of_commands_are_passed_over() -> None:
    fence = "```bash\n# First look,\n$(view a)\n\n  # then run.\n$(run make)\n# Done.\n```"
    assert [call.name for call in read(f"So:\n{fence}").calls] == ["view", "bash"]
    assert read("```bash\n# Only a comment.\n```").calls == []
    assert read("```bash\n# A script:\nls $(view a)\n```").calls == []
