"""Circles in a graph, in time that grows with its edges."""

from collections.abc import Iterator, Mapping, Sequence, Set

Graph = Mapping[str, Set[str]]


def circles(graph: Graph) -> list[list[str]]:
    """For each set of nodes that all lead to each other, a shortest way round through its first; the largest first."""
    groups = sorted(
        (sorted(group) for group in _groups(graph) if len(group) > 1), key=lambda group: (-len(group), group)
    )
    return [_round(graph, group) for group in groups]


def _groups(graph: Graph) -> Iterator[Sequence[str]]:
    """The strongly connected components (Tarjan's), without recursion, as graphs may be deep."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for start in graph:
        if start in number:
            continue
        way = [(start, iter(sorted(graph[start])))]
        number[start] = lowest[start] = len(number)
        stack.append(start)
        on_stack.add(start)
        while way:
            node, ahead = way[-1]
            following = next(ahead, None)
            if following is None:
                way.pop()
                if way:
                    lowest[way[-1][0]] = min(lowest[way[-1][0]], lowest[node])
                if lowest[node] == number[node]:
                    at = stack.index(node)
                    yield stack[at:]
                    on_stack.difference_update(stack[at:])
                    del stack[at:]
            elif following not in number:
                number[following] = lowest[following] = len(number)
                stack.append(following)
                on_stack.add(following)
                way.append((following, iter(sorted(graph.get(following, ())))))
            elif following in on_stack:
                lowest[node] = min(lowest[node], number[following])


def _round(graph: Graph, group: Sequence[str]) -> list[str]:
    """A shortest way from the first of a group back to it, inside the group."""
    inside, start = set(group), group[0]
    came = dict[str, str]()
    edge = [start]
    while edge and start not in came:
        edge = [new for node in edge for new in sorted(graph[node] & inside) if came.setdefault(new, node) == node]
    way = [start]
    while len(way) == 1 or way[-1] != start:
        way.append(came[way[-1]])
    return way[::-1]
