"""run_node: one NodeProto on arrays."""

import operator
from collections import abc
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError, EncodeError, Message
from onnx import AttributeProto, NodeProto

from gpuslice.caches import bounded_cache
from gpuslice.errors import describe, error_prefix
from gpuslice.onnx.evaluate import apply, check_attributes, check_input_count, check_outputs
from gpuslice.onnx.known_runs import KnownRuns
from gpuslice.versions import Version, find_version

DOMAINS = ("", "ai.onnx")

# The field of AttributeProto that holds a value, by its type.
_FIELDS: dict[int, str] = {
    AttributeProto.FLOAT: "f",
    AttributeProto.INT: "i",
    AttributeProto.STRING: "s",
    AttributeProto.TENSOR: "t",
    AttributeProto.GRAPH: "g",
    AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    AttributeProto.TYPE_PROTO: "tp",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.STRINGS: "strings",
    AttributeProto.TENSORS: "tensors",
    AttributeProto.GRAPHS: "graphs",
    AttributeProto.SPARSE_TENSORS: "sparse_tensors",
    AttributeProto.TYPE_PROTOS: "type_protos",
}


_MOST_KNOWN_OUTPUTS = 64


def run_node(node: NodeProto, inputs: abc.Sequence[Any], *, opset: int) -> list[Any]:
    """Run one node by the version of its operator that an opset has.

    Parameters
    ----------
    node : onnx.NodeProto
    inputs : sequence
        One value per input of the node: an array; a `gpuslice.Sequence`, list or tuple for a sequence; None for an
        omitted input. Index tensors may be Python ints.
    opset : int
        The highest version not above it runs. DynamicSlice, which no released opset has, runs at any opset.

    Returns
    -------
    list
        One entry per output of the node: a fresh C-contiguous array, a `gpuslice.Sequence`, or None for an output
        named "".

    Raises
    ------
    TypeError
        ``node`` is not a NodeProto. An element type is not in the version's list, or inputs that share a type variable
        have several types.
    IndexError
        A position is out of range or not one value.
    ValueError
        Any other argument that the text does not allow: bounds, axes, lengths, sizes; missing or extra inputs,
        attributes or outputs; an unknown operator or domain; an opset below 1.

    Notes
    -----
    Source: the ONNX operator texts, each version by its own.
    """
    check_node(node)
    opset = check_opset(node, opset)
    try:
        read = _read(node.SerializeToString(), opset)
    except (DecodeError, EncodeError) as error:  # too large or too deep for a protobuf
        raise ValueError(f"{node.op_type}: node cannot be read: {error}") from None
    key = read.known.key(enumerate(inputs)) if type(inputs) in (list, tuple) else None
    known = read.known.run(key, inputs)
    if known is not None:
        return known
    with error_prefix(read.version.name):
        values = _match_inputs(read.inputs, inputs)
        check_input_count(read.version, [value is not None for value in values])
        outputs = apply(read.version, values, read.attributes, len(read.outputs))
        if "" in read.outputs:
            outputs = [value if name else None for name, value in zip(read.outputs, outputs, strict=True)]
        return read.known.finish(key if len(outputs) <= _MOST_KNOWN_OUTPUTS else None, inputs, outputs)


@dataclass(frozen=True)
class _Read:
    """A node, checked except for its inputs."""

    version: Version
    attributes: dict[str, Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    known: KnownRuns


# A node is often run again, and reading it takes longer than running it. The key is its bytes, since it can change.
@bounded_cache(3)
def _read(serialized: bytes, opset: int) -> _Read:
    node = NodeProto.FromString(serialized)
    version = version_of(node, opset)
    with error_prefix(version.name):
        attributes = check_attributes(version, read_attributes(node))
        check_outputs(version, len(node.output))
    known = KnownRuns(version.bounds(len(node.input)), {})
    return _Read(version, attributes, tuple(node.input), tuple(node.output), known)


def check_node(node: object) -> None:
    """Raise TypeError if an object is not a NodeProto."""
    if not isinstance(node, NodeProto):
        raise TypeError(f"node must be an onnx.NodeProto; got {describe(node)}")


def check_opset(node: NodeProto, opset: object) -> int:
    """Return an opset as a Python int; raise ValueError if it is not an int of at least 1."""
    if type(opset) is int and opset >= 1:  # in every call, so without what others need
        return opset
    try:
        number = 0 if isinstance(opset, (bool, np.bool)) else operator.index(opset)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if number < 1:
        raise ValueError(f"{node.op_type}: opset must be an int of at least 1; got {describe(opset)}")
    return number


def version_of(node: NodeProto, opset: int) -> Version:
    """Return the version of a node's operator in an opset; raise ValueError if there is none."""
    if node.domain not in DOMAINS:
        raise ValueError(f"{node.op_type}: domain must be '' or 'ai.onnx'; got {node.domain!r}")
    return find_version(node.op_type, opset)


def read_attributes(node: NodeProto) -> dict[str, Any]:
    """Return a node's attributes: ints and lists as Python's, others unchanged.

    Raises
    ------
    ValueError
        An attribute is given twice, refers to an attribute of a function, or has values of several types.
    """
    attributes: dict[str, Any] = {}
    for attribute in node.attribute:
        if attribute.name in attributes:
            raise ValueError(f"attribute {attribute.name} must be given once; got it twice")
        if attribute.ref_attr_name:
            raise ValueError(f"attribute {attribute.name} must have a value; it refers to {attribute.ref_attr_name!r}")
        attributes[attribute.name] = attribute_value(attribute)
    return attributes


def attribute_type(attribute: AttributeProto) -> int:
    """Return the type of an attribute. Models of IR version 1 do not say it, and the field with the value shows it.

    Raises
    ------
    ValueError
        Several fields have a value, or one that is not of the type.
    """
    fields = [entry.name for entry, _ in attribute.ListFields() if entry.name in _FIELDS.values()]
    # An empty list shows no field, and the attributes of these operators that may be empty hold ints.
    kind = attribute.type or next((kind for kind, name in _FIELDS.items() if name in fields), AttributeProto.INTS)
    if any(name != _FIELDS[kind] for name in fields):
        given = AttributeProto.AttributeType.Name(kind)
        raise ValueError(f"attribute {attribute.name} of type {given} must have one value; it has {', '.join(fields)}")
    return int(kind)


def attribute_value(attribute: AttributeProto) -> Any:
    """Return the value of an attribute: ints, floats and bytes as Python's, others as protobufs."""
    value = getattr(attribute, _FIELDS[attribute_type(attribute)])
    return value if isinstance(value, (int, float, bytes, Message)) else list(value)


def _match_inputs(names: abc.Sequence[str], inputs: abc.Sequence[Any]) -> list[Any]:
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(f"inputs must be a list or tuple, one value per input; got {describe(inputs)}")
    if len(inputs) > len(names):
        raise ValueError(f"inputs must be at most {len(names)}, as the node names them; got {len(inputs)}")
    if "" in names:
        for position, (name, value) in enumerate(zip(names, inputs, strict=False)):
            if not name and value is not None:
                raise ValueError(f"input {position} must be None, since the node omits it; got {describe(value)}")
    # Trailing omitted inputs do not count, neither the node's nor the caller's. (A subclass's iterator may be endless.)
    values = [*islice(inputs, len(inputs)), *[None] * (len(names) - len(inputs))]
    while values and values[-1] is None:
        values.pop()
    return values
