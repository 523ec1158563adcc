"""The message of a commit."""

from denizen.worlds.code.commit import message_of


def test_it_is_what_the_answer_says() -> None:
    reply = "Done.\n\n## Commit\nAdd a parser\n\nThe old one was slow.\n\n## Steps\n1. …"
    assert message_of("task", reply) == "Add a parser\n\nThe old one was slow.\n"


def test_a_fence_around_it_is_taken_off() -> None:
    assert message_of("task", "## Commit\n```text\nAdd a parser\n```") == "Add a parser\n"


def test_without_one_it_is_the_task_and_the_answer() -> None:
    assert message_of("Add a parser\nplease", "I added it.") == "Add a parser\n\nI added it.\n"


def test_a_long_subject_is_cut_and_a_long_body_wrapped() -> None:
    subject, _, body = message_of("word " * 40, "thought " * 40).partition("\n\n")
    assert len(subject) <= 72
    assert subject.endswith("…")
    assert max(map(len, body.splitlines())) <= 72
