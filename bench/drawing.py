"""What the charts share: colours, title, legend and file."""

from typing import Any

from bench.machine import in_words
from bench.runners import OURS, PLAIN

COLOURS = {
    OURS: "#d95f02",
    "NumPy": "#7570b3",
    "CuPy": "#7570b3",
    "PyTorch": "#1b9e77",
    "OpenCV": "#e7298a",
    "Pillow": "#e6ab02",
    "onnxruntime": "#66a5d9",
    PLAIN: "#aaaaaa",
}


def pyplot_or_none() -> Any:
    """Return matplotlib's pyplot; None if it is not installed."""
    try:
        import matplotlib
    except ImportError:
        print("no chart: matplotlib is not installed (pip install 'gpuslice[bench]')")
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def where(result: dict[str, Any], count: int | None = None) -> str:
    """Return device and date of a result, and its number of threads, or that of the part of it that is drawn."""
    about = result["machine"]
    threads = in_words(count or about["threads"])
    device = result["gpu"]["name"] if "gpu" in result else f"{about['processor']}, {threads}"
    return f"{device}, {about['date']}"


def save(pyplot: Any, figure: Any, names: list[str], title: str, path: str) -> None:
    """Write a figure with its title and a legend of libraries."""
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=COLOURS[name]) for name in names]
    labels = ["plain copy" if name == PLAIN else name for name in names]
    figure.legend(handles, labels, loc="outside lower center", ncols=len(names), frameon=False, fontsize=12)
    figure.suptitle(title, fontsize=13)
    figure.savefig(path, dpi=100)
    pyplot.close(figure)
