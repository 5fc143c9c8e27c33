"""run_node: one NodeProto on arrays."""

from collections.abc import Sequence as Values
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from onnx import AttributeProto, NodeProto, helper

from gpuslice.errors import speaking_as
from gpuslice.onnx.evaluate import apply, check_attributes, check_input_count, check_outputs, finish
from gpuslice.onnx.schemas import Version, find_version

DOMAINS = ("", "ai.onnx")


def run_node(node: NodeProto, inputs: Values[Any], *, opset: int) -> list[Any]:
    """Run a node as its operator's version in ``opset`` says.

    Parameters
    ----------
    node : onnx.NodeProto
    inputs : sequence
        One value an input of the node: arrays; `gpuslice.Sequence`, lists or tuples for sequences; None for an omitted
        input. Index tensors may be Python ints.
    opset : int
        The highest version not above it runs. DynamicSlice, which no released opset has, runs at any.

    Returns
    -------
    list
        One entry an output of the node: a fresh C-contiguous array, a `gpuslice.Sequence`, or None for an output named
        "".

    Raises
    ------
    TypeError
        An element type outside the version's list, or several where it wants one.
    IndexError
        A position that is out of range or not one value.
    ValueError
        Any other argument that the text does not allow: bounds, axes, lengths, sizes, missing or extra inputs,
        attributes or outputs, an unknown operator or domain.
    """
    if isinstance(opset, bool) or not isinstance(opset, int):
        raise ValueError(f"{node.op_type}: opset must be an int of at least 1; got {opset!r}")
    read = _read(node.SerializeToString(), opset)
    with speaking_as(read.version.name):
        values = _match_inputs(read.inputs, inputs)
        check_input_count(read.version, [value is not None for value in values])
        outputs = apply(read.version, values, read.attributes, len(read.outputs))
        return finish([value if name else None for name, value in zip(read.outputs, outputs, strict=True)])


@dataclass(frozen=True)
class _Read:
    """What a node says, checked but for its inputs."""

    version: Version
    attributes: dict[str, Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


# A node is often run again, and reading it takes longer than running it. Nodes can change, so their bytes are the key.
@lru_cache(maxsize=256)
def _read(serialized: bytes, opset: int) -> _Read:
    node = NodeProto.FromString(serialized)
    version = version_of(node, opset)
    with speaking_as(version.name):
        attributes = read_attributes(node)
        check_attributes(version, attributes)
        check_outputs(version, len(node.output))
    return _Read(version, attributes, tuple(node.input), tuple(node.output))


def version_of(node: NodeProto, opset: int) -> Version:
    """Give the version of a node's operator; ValueError where there is none."""
    if opset < 1:
        raise ValueError(f"{node.op_type}: opset must be an int of at least 1; got {opset!r}")
    if node.domain not in DOMAINS:
        raise ValueError(f"{node.op_type}: domain must be '' or 'ai.onnx'; got {node.domain!r}")
    return find_version(node.op_type, opset)


def read_attributes(node: NodeProto) -> dict[str, Any]:
    """Give a node's attributes as Python ints and lists, and what is neither as it is.

    Raises
    ------
    ValueError
        One given twice, or one that refers to a function's attribute.
    """
    attributes: dict[str, Any] = {}
    for attribute in node.attribute:
        if attribute.name in attributes:
            raise ValueError(f"attribute {attribute.name} must be given once; got it twice")
        if attribute.ref_attr_name:
            raise ValueError(f"attribute {attribute.name} must have a value; it refers to {attribute.ref_attr_name!r}")
        # An empty list may come without a type: no field is set that would tell.
        untyped = attribute.type == AttributeProto.UNDEFINED
        value = list(attribute.ints) if untyped else helper.get_attribute_value(attribute)
        attributes[attribute.name] = list(value) if attribute.type == AttributeProto.INTS else value
    return attributes


def _match_inputs(names: Values[str], inputs: Values[Any]) -> list[Any]:
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(f"inputs must be a list or tuple, one value an input; got {type(inputs).__name__}")
    if len(inputs) > len(names):
        raise ValueError(f"inputs must be at most {len(names)}, as the node names them; got {len(inputs)}")
    if "" in names:
        for position, (name, value) in enumerate(zip(names, inputs, strict=False)):
            if not name and value is not None:
                raise ValueError(f"input {position} must be None, since the node omits it; got {type(value).__name__}")
    # Trailing omitted inputs are no inputs, in the node's list or in the caller's.
    values = [*inputs, *[None] * (len(names) - len(inputs))]
    while values and values[-1] is None:
        values.pop()
    return values
