"""Draw the results of tiles.onnx as one picture: mirror and crop above, planes and tiles below.

python examples/show_tiles.py results.npz picture.png
"""

import sys

import numpy as np
from PIL import Image

GAP = 8


def row(pictures: list[np.ndarray]) -> np.ndarray:
    """Return pictures side by side on white."""
    height = max(picture.shape[0] for picture in pictures) + GAP
    width = sum(picture.shape[1] + GAP for picture in pictures)
    canvas, left = np.full((height, width, 3), 255, np.uint8), 0
    for picture in pictures:
        canvas[: picture.shape[0], left : left + picture.shape[1]] = picture
        left += picture.shape[1] + GAP
    return canvas


def plane(results: np.lib.npyio.NpzFile, name: str, channel: int) -> np.ndarray:
    """Return a colour plane of shape (height, width, 1) as a picture in its colour."""
    picture = np.zeros((*results[name].shape[:2], 3), np.uint8)
    picture[..., channel] = results[name][..., 0]
    return picture


def main(source: str, target: str) -> None:
    """Read the results and write the picture."""
    with np.load(source, allow_pickle=False) as results:
        tiles = [results[name] for name in results.files if name.startswith("tiles_")]
        rows = [
            row([results["mirror"], results["crop"]]),
            row([plane(results, name, channel) for channel, name in enumerate(("red", "green", "blue"))]),
            row([*tiles, np.full((64, 64, 3), 255, np.uint8), results["tile"]]),
        ]
    width = max(part.shape[1] for part in rows)
    padded = [np.pad(part, ((0, 0), (0, width - part.shape[1]), (0, 0)), constant_values=255) for part in rows]
    Image.fromarray(np.concatenate(padded)).save(target)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: show_tiles.py RESULTS.npz PICTURE.png")
    main(*sys.argv[1:])
