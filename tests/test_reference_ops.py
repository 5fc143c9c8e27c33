"""reference_ops: these operators in onnx.reference's evaluator."""

import numpy as np
from helpers import assert_same, model, node
from onnx import AttributeProto, helper
from onnx.reference import ReferenceEvaluator

from gpuslice.onnx import reference_ops, unsupported

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_reference_ops_take_linked_attributes_and_correct_the_reference():
    """A function's attribute reaches our Split, and a start below -d is element 0 as the text says."""
    inner = helper.make_node("Split", ["x"], ["a", "b"], num_outputs=2)
    inner.attribute.append(AttributeProto(name="axis", type=AttributeProto.INT, ref_attr_name="along"))
    function = helper.make_function(
        "local", "Halve", ["x"], ["a", "b"], [inner], [helper.make_opsetid("", 18)], ["along"]
    )
    call = helper.make_node("Halve", ["x"], ["a", "b"], domain="local", along=2)
    low = node("Slice", ["x", "s", "e", "", "t"], ["y"])
    outer = model([call, low], ["x"], ["a", "b", "y"], {"s": [-9], "e": [-99], "t": [-1]}, opset=18)
    outer.opset_import.append(helper.make_opsetid("local", 1))
    outer.functions.append(function)
    a, b, y = ReferenceEvaluator(outer, new_ops=reference_ops()).run(None, {"x": X})
    assert_same(a, X[..., :2].copy())
    assert_same(b, X[..., 2:].copy())
    assert_same(y, X[:1].copy())
    assert unsupported(outer)
