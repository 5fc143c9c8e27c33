"""How OpenCV and Pillow do the work of the cases of images. Pillow gets its own images before the clock starts."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bench.case import ALL, Case
from bench.machine import threads
from bench.peers import Call, outputs_like

# Does what a recipe says: from the inputs to arrays that exist, or to new ones if there is None in their place.
OpenCV = Callable[[Any, Sequence[Any], Sequence[Any]], Any]


def _opencv_reversed(cv2: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> Any:
    (image,), (out,) = inputs, outs
    if image.shape[2] == 3:
        return cv2.cvtColor(image, cv2.COLOR_BGR2RGB, dst=out)
    out = np.empty_like(image) if out is None else out
    cv2.mixChannels([image], [out], [0, 3, 1, 2, 2, 1, 3, 0])
    return out


def _opencv_channels_first(cv2: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> Any:
    (image,), (out,) = inputs, outs
    out = np.empty((image.shape[2], *image.shape[:2]), image.dtype) if out is None else out
    cv2.split(image, list(out))
    return out


def _opencv_alpha(cv2: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> Any:
    # Faster than merge and mixChannels.
    out = cv2.cvtColor(inputs[0], cv2.COLOR_BGR2BGRA, dst=outs[0])
    return cv2.insertChannel(inputs[1], out, 3)


def _opencv_thumbnail(cv2: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> Any:
    height, width = inputs[0].shape[:2]
    return cv2.resize(inputs[0], (width // 2, height // 2), dst=outs[0], interpolation=cv2.INTER_NEAREST)


_OPENCV: dict[str, OpenCV] = {
    "mirror": lambda cv2, x, out: cv2.flip(x[0], 1, dst=out[0]),
    "upside down": lambda cv2, x, out: cv2.flip(x[0], 0, dst=out[0]),
    "rotate 180": lambda cv2, x, out: cv2.rotate(x[0], cv2.ROTATE_180, dst=out[0]),
    "rotate 90": lambda cv2, x, out: cv2.rotate(x[0], cv2.ROTATE_90_COUNTERCLOCKWISE, dst=out[0]),
    "rotate 270": lambda cv2, x, out: cv2.rotate(x[0], cv2.ROTATE_90_CLOCKWISE, dst=out[0]),
    "transpose": lambda cv2, x, out: cv2.transpose(x[0], dst=out[0]),
    "channels reversed": _opencv_reversed,
    "apart": lambda cv2, x, out: cv2.split(x[0], None if out[0] is None else out),
    "together": lambda cv2, x, out: cv2.merge(x, dst=out[0]),
    "thumbnail by steps": _opencv_thumbnail,
    "HWC to CHW": _opencv_channels_first,
    "CHW to HWC": lambda cv2, x, out: cv2.merge(list(x[0]), dst=out[0]),
    "alpha dropped": lambda cv2, x, out: cv2.cvtColor(x[0], cv2.COLOR_BGRA2BGR, dst=out[0]),
    "alpha added": _opencv_alpha,
}


def opencv_into(case: Case, x: Any) -> Call:
    """OpenCV with ``dst=``, or the arrays that split writes."""
    return _opencv(case, x, outputs_like(case, x))


def opencv_fresh(case: Case, x: Any) -> Call:
    """OpenCV, which allocates its outputs."""
    return _opencv(case, x, [None] * len(case.output_shapes(x.shape)))


def _opencv(case: Case, x: Any, outs: list[Any]) -> Call:
    import cv2

    cv2.setNumThreads(threads())
    inputs = case.inputs(x)
    if case.recipe == "crop":  # of a view, which OpenCV's C++ code would use too
        view = case.view(x)
        return lambda: [cv2.copyTo(view, None, dst=outs[0])]
    work, many = _OPENCV[case.recipe], case.split is not None and not case.joins
    call: Call = (lambda: work(cv2, inputs, outs)) if many else (lambda: [work(cv2, inputs, outs)])
    if outs[0] is None:
        return call
    # What OpenCV cannot write in place it allocates, which is another mode.
    if not all(given is out or np.shares_memory(given, out) for given, out in zip(call(), outs, strict=True)):
        raise NotImplementedError("OpenCV allocates these outputs")
    return call


Pillow = Callable[[Sequence[Any]], Any]


def _pillow_thumbnail(images: Sequence[Any]) -> Any:
    from PIL import Image

    width, height = images[0].size
    # Of each pair of pixels Pillow takes the second one. In a box that is a pixel smaller it takes the first.
    box = (0, 0, width - 1, height - 1)
    return images[0].resize((width // 2, height // 2), Image.Resampling.NEAREST, box)


def _pillow_alpha(images: Sequence[Any]) -> Any:
    image = images[0].copy()
    image.putalpha(images[1])
    return image


def _pillow_recipes(case: Case, x: Any) -> dict[str, Pillow]:
    from PIL import Image

    turn, mode = Image.Transpose, "RGBA" if case.channels == 4 else "RGB"
    rows, columns = (*case.index, ALL, ALL)[:2]
    top, bottom, _ = rows.indices(x.shape[0])
    left, right, _ = columns.indices(x.shape[1])
    return {
        "mirror": lambda images: images[0].transpose(turn.FLIP_LEFT_RIGHT),
        "upside down": lambda images: images[0].transpose(turn.FLIP_TOP_BOTTOM),
        "rotate 180": lambda images: images[0].transpose(turn.ROTATE_180),
        "rotate 90": lambda images: images[0].transpose(turn.ROTATE_90),
        "rotate 270": lambda images: images[0].transpose(turn.ROTATE_270),
        "transpose": lambda images: images[0].transpose(turn.TRANSPOSE),
        "channels reversed": lambda images: Image.merge(mode, images[0].split()[::-1]),
        "apart": lambda images: images[0].split(),
        "together": lambda images: Image.merge(mode, images),
        "crop": lambda images: images[0].crop((left, top, right, bottom)),
        "thumbnail by steps": _pillow_thumbnail,
        "alpha dropped": lambda images: images[0].convert("RGB"),
        "alpha added": _pillow_alpha,
    }


def pillow_into(case: Case, x: Any) -> Call:
    """Raise: Pillow cannot write to existing images."""
    raise NotImplementedError("Pillow allocates its outputs")


def pillow_fresh(case: Case, x: Any) -> Call:
    """Pillow's methods of images."""
    from PIL import Image

    recipes = _pillow_recipes(case, x)
    if x.dtype != np.uint8:
        raise NotImplementedError("Pillow's images of several channels are of bytes")
    if case.recipe not in recipes:
        raise NotImplementedError("Pillow's images have their channels last")
    images = [Image.fromarray(np.squeeze(array)) for array in case.inputs(x)]
    work, many = recipes[case.recipe], case.recipe == "apart"
    return (lambda: work(images)) if many else (lambda: [work(images)])
