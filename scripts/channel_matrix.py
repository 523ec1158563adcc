"""Run the channels' tests, and write their outcomes into docs/channels/delivery.md: fault × channel.

python -m scripts.channel_matrix
"""

import re
import sys
from collections import defaultdict
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "channels" / "delivery.md"
TESTS = ROOT / "tests" / "worlds" / "chat" / "delivery" / "channels"
TABLE = re.compile(r"(?<=<!-- matrix -->\n).*?(?=<!-- end of matrix -->)", re.DOTALL)
ONCE, UNKNOWN, NOT_APPLICABLE = "once, in order", "unknown, reported", "–"
FAULTS = {
    "the service delivers a message twice": ["duplicate_has_the_same_id"],
    "it delivers a message again with another id": ["duplicate_with_a_new_id_is_the_same_otherwise"],
    "it returns the channel's own messages": ["own_echo_is_dropped"],
    "a message can't be stored": ["message_that_was_not_accepted_is_delivered_again"],
    "a person edits a message": ["edit_names_the_message_that_it_corrects"],
    "another bot writes": ["bot_is_marked"],
    "a group talks to others": ["message_of_a_group_says_whether_it_is_addressed"],
    "a thread in a room": ["thread_is_a_chat_of_its_own"],
    "a file over the limit arrives": ["received_file_over_the_limit_is_reported"],
    "a file over the limit is sent": ["media_over_the_limit_are_refused"],
    "10,000 characters of Markdown": ["long_markdown_arrives_whole_and_in_order"],
    "429 in the middle of a preview": ["flood_limit_ends_a_preview_and_delays_its_reply"],
    "429 in the middle of a split reply": ["part_that_meets_a_flood_limit_waits"],
    "the final edit is refused": ["reply_is_sent_where_its_edit_is_refused"],
    "the answer to the final edit is lost": ["lost_answer_of_the_final_edit_is_harmless"],
    "the answer to a send is lost": ["lost_answer_is_found_out_or_reported"],
    "messages come while the connection is down": ["messages_arrive_after_a_reconnect"],
    "the connection breaks before a send": ["message_after_a_reconnect_is_sent_once"],
    "the service stays down: the owner hears on another channel": ["owner_is_alarmed_when_the_service_stays_down"],
    "the token is rotated": ["rotated_token_is_reported_and_messages_wait"],
    "kill -9 before and after each send": ["killed_send_is_found_out", "killed_send_is_reported"],
    "two gateways with one account": ["second_gateway_is_refused_by_name"],
}
"""The tests for each fault, without `test_`."""

UNKNOWN_TESTS = {"killed_send_is_reported"}
"""Tests in which another process sends messages and must report them as unknown."""
BASIC_TEST = "message_is_sent_to_its_chat"
"""If this one is missing, the channel's tests didn't run."""

Outcomes = Mapping[str, Mapping[str, str]]


class OutcomeRecorder:
    """A pytest plugin that records the outcome of each passed test, by channel and name."""

    def __init__(self) -> None:
        self.outcomes: defaultdict[str, dict[str, str]] = defaultdict(dict)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Function) -> Generator[None, object, object]:
        """Record whether a message stays unknown."""
        states = dict[str, str]()
        channel: Any = item.funcargs.get("channel")
        if channel is not None:
            send = channel.send

            async def recording(message: Any) -> Any:
                sent = await send(message)
                states[message.id] = sent.state
                return sent

            channel.send = recording
        outcome = yield
        if "unknown" in states.values():
            item.user_properties.append(("unknown", True))
        return outcome

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the outcome; if a channel is tested with several servers, the worst one."""
        if report.when != "call" or not report.passed:
            return
        file, _, name = report.nodeid.partition("::")
        channel = Path(file).stem.removeprefix("test_")
        test = name.rpartition("::")[2].removeprefix("test_")
        if ("unknown", True) in report.user_properties or test in UNKNOWN_TESTS:
            self.outcomes[channel][test] = UNKNOWN
        else:
            self.outcomes[channel].setdefault(test, ONCE)


def table(outcomes: Outcomes) -> str:
    """The matrix in Markdown."""
    channels = sorted(outcomes)
    lines = [f"| | {' | '.join(channels)} |", f"|---|{'---|' * len(channels)}"]
    for fault, tests in FAULTS.items():
        cells = (
            next((outcomes[channel][test] for test in tests if test in outcomes[channel]), NOT_APPLICABLE)
            for channel in channels
        )
        lines.append(f"| {fault} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the table, and write it into the page unless a test fails."""
    recorder = OutcomeRecorder()
    tests = " or ".join([BASIC_TEST, *(test for tests in FAULTS.values() for test in tests)])
    status = pytest.main(["-q", "-p", "no:xdist", "-k", tests, str(TESTS)], plugins=[recorder])
    suites = {name: outcomes for name, outcomes in recorder.outcomes.items() if BASIC_TEST in outcomes}
    print(table(suites))
    if status:
        return 1
    PAGE.write_text(TABLE.sub(lambda _: table(suites), PAGE.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
