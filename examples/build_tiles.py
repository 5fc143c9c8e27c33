"""Build tiles.onnx: mirror a photograph, crop it, split it into colour planes and into a sequence of tiles.

python examples/build_tiles.py [tiles.onnx]
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TILE = 64
# The crop in the mirrored picture, as (rows, columns).
STARTS, ENDS = (32, 64), (160, 256)


def build() -> onnx.ModelProto:
    """Return the model. Its input is an image of shape (height, width, 3), uint8, at least 160 by 256."""
    constants = {
        "last": [-1],
        "before_first": [np.iinfo(np.int64).min],
        "width_axis": [1],
        "backward": [-1],
        "crop_starts": STARTS,
        "crop_ends": ENDS,
        "tile_size": TILE,
        "lowest": -1,
        "second": 1,
    }
    nodes = [
        # A negative step and an end below the axis: every column, from the last to the first.
        helper.make_node("Slice", ["image", "last", "before_first", "width_axis", "backward"], ["mirror"], "mirror"),
        helper.make_node("Slice", ["mirror", "crop_starts", "crop_ends"], ["crop"], "crop"),
        helper.make_node("Split", ["crop"], ["red", "green", "blue"], "planes", axis=2, num_outputs=3),
        helper.make_node("SplitToSequence", ["crop", "tile_size"], ["bands"], "bands", axis=0),
        helper.make_node("SequenceAt", ["bands", "lowest"], ["band"], "lowest band"),
        helper.make_node("SplitToSequence", ["band", "tile_size"], ["tiles"], "tiles", axis=1),
        helper.make_node("SequenceAt", ["tiles", "second"], ["tile"], "second tile"),
    ]
    image = ("height", "width", 3)
    outputs = ("mirror", "crop", "red", "green", "blue", "tile")
    graph = helper.make_graph(
        nodes,
        "tiles",
        [helper.make_tensor_value_info("image", TensorProto.UINT8, image)],
        [
            *(helper.make_tensor_value_info(name, TensorProto.UINT8, [None] * 3) for name in outputs),
            helper.make_tensor_sequence_value_info("tiles", TensorProto.UINT8, None),
        ],
        [numpy_helper.from_array(np.asarray(value, dtype=np.int64), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model)
    return model


if __name__ == "__main__":
    onnx.save(build(), sys.argv[1] if len(sys.argv) > 1 else "tiles.onnx")
