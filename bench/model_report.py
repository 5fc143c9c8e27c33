"""The tables of ``python -m bench models``."""

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from bench.machine import machine
from bench.models import COPIES, DENSE, GRAPH, NODE, OPS, REFERENCE, RUNTIME, RUNTIME_CONSTANT, Row
from bench.numbers import line, table

# By the bytes of all outputs.
CLASSES = {"< 4 KB": 1 << 12, "4-64 KB": 1 << 16, "64 KB-1 MB": 1 << 20, "> 1 MB": 1 << 62}
_MOST_SHOWN = 12
_READING = (
    "A node is distinct by its operator, attributes, shapes and types, and the values of its bounds. Its inputs are "
    "those that it has when the model runs. What an earlier package has is not counted again. A node does not run if "
    "its branch is not taken, or if onnx.reference cannot run its subgraph. Results are compared by every bit with "
    "those of onnxruntime. The times are in microseconds: the median of {rounds} rounds, in which all calls take "
    "turns, and of all nodes of the row. A ratio is the median of the ratios of each node; below 1 gpuslice is "
    "faster. Sizes are of all outputs. For {copies!r} the results exist, are contiguous, and are only copied: what "
    "NumPy takes if nothing has to be found out."
)


def report(packages: dict[str, Counter[str]], nodes: Sequence[Row], parts: Sequence[Row], rounds: int) -> str:
    """Return all tables as Markdown."""
    facts = machine()
    versions = ", ".join(f"{name} {version}" for name, version in facts["packages"].items())
    about = (
        f"{facts['date']}, commit {facts['commit']}, {facts['processor']}, kernels: {facts['kernels']}, one thread. "
        f"Python {facts['python']}, {versions}."
    )
    sections = [
        "# Real models",
        about,
        _READING.format(rounds=rounds, copies=COPIES),
        _correct(packages, nodes, parts),
        "## `run_node` and a session of one node",
        "The session gets the bounds as inputs, as `run_node` does; in the next column they are initializers.",
        _times(list(by_class(nodes)), [NODE, RUNTIME, RUNTIME_CONSTANT, COPIES]),
        "## `Graph` of one node, its bounds constant, and `run_node`",
        _times(list(by_class(nodes)), [GRAPH, NODE, RUNTIME_CONSTANT]),
        "## `reference_ops` and the operators of onnx.reference",
        f"Those return views. In the column {DENSE!r} they are copied, as the results of `reference_ops` are.",
        _times(list(by_class(nodes)), [OPS, REFERENCE, DENSE]),
        "## `Graph` and a session of a part",
        _times(list(by_length(parts)), [GRAPH, RUNTIME, COPIES]),
        _slowest(parts),
    ]
    return "\n\n".join(sections)


def by_class(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield the nodes by size class, Split and the others apart."""
    for title in ("Split", "others"):
        found = [row for row in rows if (row.piece.nodes[0].op_type == "Split") == (title == "Split")]
        least = 0
        for name, limit in CLASSES.items():
            yield f"{title}, {name}", [row for row in found if least <= row.size < limit]
            least = limit
    yield "all", list(rows)


def by_length(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield the parts by their numbers of nodes."""
    yield "1 node", [row for row in rows if len(row.piece.nodes) == 1]
    yield "2 to 4 nodes", [row for row in rows if 2 <= len(row.piece.nodes) <= 4]
    yield "5 nodes or more", [row for row in rows if len(row.piece.nodes) > 4]
    yield "all", list(rows)


def _correct(packages: dict[str, Counter[str]], nodes: Sequence[Row], parts: Sequence[Row]) -> str:
    """Return what each package has, and how many results are onnxruntime's."""
    heads = ["models", "nodes", "nodes that ran", "distinct nodes", "distinct parts"]
    total: Counter[str] = sum(packages.values(), Counter())
    lines = [line([name, *[counts[head] for head in heads]]) for name, counts in [*packages.items(), ("all", total)]]
    text = [table(["package", *heads], lines)]
    for name, rows in ((NODE, nodes), (OPS, nodes), (GRAPH, nodes), (GRAPH, parts)):
        kind = "nodes" if rows is nodes else "parts"
        right = sum(name not in row.wrong for row in rows)
        text.append(f"{name}: {right} of {len(rows)} {kind} are equal.")
        text += [f"Not equal: {row.piece.source}." for row in rows if name in row.wrong]
    return "\n\n".join(text)


def _times(groups: Sequence[tuple[str, list[Row]]], names: Sequence[str]) -> str:
    """Return medians of each call by groups, and the ratios of the first call to each other one."""
    others = names[1:]
    head = ["nodes", "count", *names, *[f"{names[0]} : {name}" for name in others]]
    head.append(f"slower than {others[0]}")
    lines = []
    for title, rows in groups:
        if rows:
            times = [f"{1e6 * median(row.seconds[name] for row in rows):.1f}" for name in names]
            ratios = [f"{median(row.seconds[names[0]] / row.seconds[name] for row in rows):.2f}" for name in others]
            slower = sum(row.seconds[names[0]] > row.seconds[others[0]] for row in rows)
            lines.append(line([title, len(rows), *times, *ratios, slower]))
    return table(head, lines)


def _slowest(parts: Sequence[Row]) -> str:
    """Return the parts with the largest ratios."""

    def ratio(row: Row) -> float:
        return row.seconds[GRAPH] / row.seconds[RUNTIME]

    shown = sorted((row for row in parts if ratio(row) > 1), key=ratio, reverse=True)[:_MOST_SHOWN]
    if not shown:
        return "`Graph` is ahead on every part."
    lines = [
        line([row.piece.source, len(row.piece.nodes), row.size, *_microseconds(row), f"{ratio(row):.2f}"])
        for row in shown
    ]
    return "Parts on which onnxruntime is ahead, the largest ratios first:\n\n" + table(
        ["part, by its first node", "nodes", "bytes", GRAPH, RUNTIME, COPIES, f"{GRAPH} : {RUNTIME}"], lines
    )


def _microseconds(row: Row) -> list[str]:
    return [f"{1e6 * row.seconds[name]:.1f}" for name in (GRAPH, RUNTIME, COPIES)]
