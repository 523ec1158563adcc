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
    search = _Search(graph)
    for start in graph:
        if start not in search.number:
            yield from search.groups(start)


class _Search:
    """What Tarjan's search knows: the nodes by when they were found, and the earliest that each leads back to."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.number: dict[str, int] = {}
        self._lowest: dict[str, int] = {}
        self._open: dict[str, None] = {}
        self._way: list[tuple[str, Iterator[str]]] = []

    def groups(self, start: str) -> Iterator[Sequence[str]]:
        """The components that can be reached and weren't yet."""
        self._enter(start)
        while self._way:
            node, ahead = self._way[-1]
            following = next(ahead, None)
            if following is None:
                self._way.pop()
                if self._lowest[node] == self.number[node]:
                    yield self._closed(node)
                if self._way:
                    self._lead(self._way[-1][0], self._lowest[node])
            elif following not in self.number:
                self._enter(following)
            elif following in self._open:
                self._lead(node, self.number[following])

    def _enter(self, node: str) -> None:
        self.number[node] = self._lowest[node] = len(self.number)
        self._open[node] = None
        self._way.append((node, iter(sorted(self._graph.get(node, ())))))

    def _lead(self, node: str, back: int) -> None:
        self._lowest[node] = min(self._lowest[node], back)

    def _closed(self, node: str) -> Sequence[str]:
        """All that was found since, and isn't in a component yet."""
        group: list[str] = []
        while node in self._open:
            group.append(self._open.popitem()[0])
        return group


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
