"""Cycles in graphs."""

from denizen.worlds.code.tools.analysis.imports import cycles


def test_a_cycle_goes_from_its_first_node_back_to_it() -> None:
    assert cycles({"b": {"c"}, "c": {"a"}, "a": {"b"}, "d": {"a"}}) == [["a", "b", "c", "a"]]


def test_the_shortest_cycle_is_reported() -> None:
    assert cycles({"a": {"b", "c"}, "b": {"d"}, "c": {"a"}, "d": {"a"}}) == [["a", "c", "a"]]


def test_each_strongly_connected_set_is_reported_once_the_largest_first() -> None:
    graph = {"a": {"b"}, "b": {"a", "x"}, "x": {"y"}, "y": {"z"}, "z": {"x"}}
    assert cycles(graph) == [["x", "y", "z", "x"], ["a", "b", "a"]]


def test_a_graph_without_cycles_has_none() -> None:
    assert cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_a_very_deep_graph_is_no_problem() -> None:
    graph = {str(number): {str(number + 1)} for number in range(100_000)} | {"100000": set()}
    assert cycles(graph) == []
