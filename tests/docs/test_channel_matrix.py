"""The delivery page shows the results of `python -m scripts.channel_matrix`: each fault for each channel."""

from importlib.metadata import distribution

from scripts.channel_matrix import FAULTS, NOT_APPLICABLE, ONCE, PAGE, TABLE, UNKNOWN, table
from tests.worlds.chat.delivery.channels.kill_conformance import KilledChannelConformance


def matrix() -> list[list[str]]:
    """The cells of the page's table."""
    shown = TABLE.search(PAGE.read_text("utf-8"))
    assert shown
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in shown[0].splitlines()]


def test_faults_are_tests_of_the_suite() -> None:
    assert [
        test for tests in FAULTS.values() for test in tests if not hasattr(KilledChannelConformance, f"test_{test}")
    ] == []


def test_page_has_every_fault_for_every_channel() -> None:
    heading, _, *lines = matrix()
    kinds = {entry.name for entry in distribution("denizen").entry_points if entry.group == "denizen.channels"}
    assert heading[1:] == sorted(kinds - {"apprise"})  # which only sends
    assert [fault for fault, *_ in lines] == [*FAULTS]
    assert {cell for _, *cells in lines for cell in cells} <= {ONCE, UNKNOWN, NOT_APPLICABLE}


def test_untested_fault_is_a_dash() -> None:
    found = {"pigeon": {"own_echo_is_dropped": ONCE, "lost_answer_is_found_out_or_reported": UNKNOWN}}
    lines = dict(line.strip("| ").split(" | ") for line in table(found).splitlines()[2:])
    assert lines["it returns the channel's own messages"] == ONCE
    assert lines["the answer to a send is lost"] == UNKNOWN
    assert lines["the token is rotated"] == NOT_APPLICABLE
