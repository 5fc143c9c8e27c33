"""What is measured of images: the arrays (height, width, channels) of photographs, and their planes."""

from collections.abc import Iterator
from math import isqrt

from bench import limits
from bench.case import ALL, BACK, Case

WIDTHS = (1, 2, 4)
CHANNELS = (3, 4)
_MOST_PIXELS = 4000 * 6000
_HALF = slice(None, None, 2)
_TURNED = (1, 0, 2)
_OF_BYTES = {1: 1.1}  # a target


def _size(pixels: int) -> tuple[int, int]:
    """Return the height and width of an image of at most so many pixels: 2 to 3, and even, so that it can be halved."""
    pixels = min(pixels, _MOST_PIXELS)
    height = max(2, isqrt(pixels * 2 // 3) // 2 * 2)
    return height, pixels // height // 2 * 2


def _cases(channels: int) -> Iterator[Case]:
    """Yield the cases of images with so many channels."""

    def case(recipe, index=(), *, planes=False, **rest):
        def shape(items, _):
            size = _size(items // channels)
            return (channels, *size) if planes else (*size, channels)

        name = f"{recipe}, {channels} channels"
        return Case("images", name, shape, index, widths=WIDTHS, recipe=recipe, channels=channels, **rest)

    each_channel = {"split": lambda count: [1] * count, "axis": 2, "keeps_axis": False}
    yield case("mirror", (ALL, BACK), targets=_OF_BYTES)
    yield case("upside down", (BACK,))
    yield case("rotate 180", (BACK, BACK))
    yield case("rotate 90", (ALL, BACK), axes=_TURNED)
    yield case("rotate 270", (BACK,), axes=_TURNED)
    yield case("transpose", axes=_TURNED)
    yield case("channels reversed", (ALL, ALL, BACK), targets=_OF_BYTES)
    yield case("apart", **each_channel, targets=_OF_BYTES, limit=limits.THREE)
    yield case("together", **each_channel, joins=True, targets=dict.fromkeys(WIDTHS, 0.9))
    yield case("crop", (slice(3, -5), slice(7, -9)))
    yield case("thumbnail by steps", (_HALF, _HALF))
    yield case("HWC to CHW", axes=(2, 0, 1))
    yield case("CHW to HWC", axes=(1, 2, 0), planes=True)
    if channels == 4:
        yield case("alpha dropped", (ALL, ALL, slice(0, 3)))
        yield case("alpha added", split=lambda count: [count - 1, 1], axis=2, joins=True)


IMAGES = [case for channels in CHANNELS for case in _cases(channels)]
