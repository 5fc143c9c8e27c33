"""Which nodes of a graph can run together: pieces that are connected, and none of which waits for its own results."""

from collections import abc, defaultdict
from itertools import pairwise


def partition(
    reads: abc.Sequence[abc.Collection[int]], supported: abc.Collection[int], shared: abc.Iterable[abc.Sequence[int]]
) -> list[list[int]]:
    """Return the supported nodes in pieces.

    Two nodes are connected if one reads the other, or if both read one value. No piece reads, through nodes outside of
    it, what it returns itself. The same holds for all pieces together: they and the other nodes can run one after the
    other, in some order.

    Parameters
    ----------
    reads : sequence of collections of int
        For each node the nodes whose results it reads. All of them come before it.
    supported : collection of int
        The nodes that may be in a piece.
    shared : iterable of sequences of int
        Nodes that read one value.

    Returns
    -------
    list of list of int
        Each in ascending order, by its first node.
    """
    pairs = [(a, b) for b in supported for a in reads[b] if a in supported]
    pairs += [pair for nodes in shared for pair in pairwise(node for node in nodes if node in supported)]
    pieces = _Pieces(reads)
    levels = _levels(reads, supported)
    for a, b in pairs:
        if levels[a] == levels[b]:
            pieces.merge(a, b)
    changed = True
    while changed:
        changed = False
        for a, b in pairs:
            if not pieces.are_one(a, b) and not pieces.have_detour(a, b) and not pieces.have_detour(b, a):
                pieces.merge(a, b)
                changed = True
    return pieces.of(supported)


def _levels(reads: abc.Sequence[abc.Collection[int]], supported: abc.Collection[int]) -> list[int]:
    """Return how often the longest way to each node leaves the supported nodes.

    Every way from a node to another one of its level that begins and ends at supported nodes stays among them. So nodes
    of one level can be merged without a search, which does most of the work.
    """
    levels: list[int] = []
    for node, sources in enumerate(reads):
        outside = node not in supported
        levels.append(max((levels[source] + (outside and source in supported) for source in sources), default=0))
    return levels


class _Pieces:
    """A partition of the nodes of a graph, at first into single nodes."""

    def __init__(self, reads: abc.Sequence[abc.Collection[int]]) -> None:
        self._piece = list(range(len(reads)))
        self._members = [[node] for node in self._piece]
        self._readers: list[list[int]] = [[] for _ in reads]
        for node, sources in enumerate(reads):
            for source in sources:
                self._readers[source].append(node)

    def are_one(self, a: int, b: int) -> bool:
        return self._piece[a] == self._piece[b]

    def merge(self, a: int, b: int) -> None:
        """Merge the pieces of two nodes."""
        into, other = sorted((self._piece[a], self._piece[b]), key=lambda piece: -len(self._members[piece]))
        if into != other:
            for node in self._members[other]:
                self._piece[node] = into
            self._members[into] += self._members[other]
            self._members[other] = []

    def have_detour(self, a: int, b: int) -> bool:
        """Return whether the piece of ``b`` reads that of ``a`` through other pieces."""
        start, end = self._piece[a], self._piece[b]
        seen, waiting = {start}, [piece for piece in self._after(start) if piece != end]
        while waiting:
            piece = waiting.pop()
            if piece == end:
                return True
            if piece not in seen:
                seen.add(piece)
                waiting += self._after(piece)
        return False

    def of(self, nodes: abc.Collection[int]) -> list[list[int]]:
        """Return the pieces that hold some nodes."""
        found: dict[int, list[int]] = defaultdict(list)
        for node in sorted(nodes):
            found[self._piece[node]].append(node)
        return list(found.values())

    def _after(self, piece: int) -> abc.Iterator[int]:
        return (self._piece[reader] for node in self._members[piece] for reader in self._readers[node])
