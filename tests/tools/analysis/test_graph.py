"""Circles in graphs."""

from denizen.tools.analysis.graph import circles


def test_a_circle_is_told_from_its_first_node_back_to_it() -> None:
    assert circles({"b": {"c"}, "c": {"a"}, "a": {"b"}, "d": {"a"}}) == [["a", "b", "c", "a"]]


def test_the_shortest_way_round_is_told() -> None:
    assert circles({"a": {"b", "c"}, "b": {"d"}, "c": {"a"}, "d": {"a"}}) == [["a", "c", "a"]]


def test_every_knot_is_told_once_the_largest_first() -> None:
    graph = {"a": {"b"}, "b": {"a", "x"}, "x": {"y"}, "y": {"z"}, "z": {"x"}}
    assert circles(graph) == [["x", "y", "z", "x"], ["a", "b", "a"]]


def test_a_graph_without_circles_has_none() -> None:
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_a_very_deep_graph_is_no_problem() -> None:
    graph = {str(number): {str(number + 1)} for number in range(100_000)} | {"100000": set()}
    assert circles(graph) == []
