"""The options of the commands that run the cases."""

import argparse
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
_PICTURE = Path(__file__).parent.parent / "docs" / "images.png"


def run_parser() -> argparse.ArgumentParser:
    """Return the parser of ``python -m bench``."""
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        parents=[_common(), _compared()],
        description="Time gpuslice beside other libraries; write a table, a chart and the numbers as JSON.",
        epilog="`python -m bench sizes` times some cases at every size, `python -m bench images --output FILE` the "
        "cases of images only, `python -m bench compare BASE [HEAD]` two commits of gpuslice; see their --help.",
    )
    _add_folder(parser)
    parser.add_argument("--device", choices=("cpu", "cuda", "all"), default="cpu", help="by default the CPU")
    parser.add_argument("--name", help="first part of the names of the files, before the date; by default the device")
    return parser


def size_parser() -> argparse.ArgumentParser:
    """Return the parser of ``python -m bench sizes``."""
    parser = argparse.ArgumentParser(
        prog="python -m bench sizes",
        parents=[_common(), _compared()],
        description="Time gpuslice beside other libraries at sizes from 64 bytes to 256 MiB, on one thread and on all; "
        "write a table, a picture of curves and the numbers as JSON, sizes-DATE.{md,png,json}.",
    )
    _add_folder(parser)
    return parser


def image_parser() -> argparse.ArgumentParser:
    """Return the parser of ``python -m bench images``."""
    parser = argparse.ArgumentParser(
        prog="python -m bench images",
        parents=[_common(), _compared()],
        description="Time gpuslice beside other libraries on images; print a table, and draw a picture of the bytes.",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", required=True, help="a Markdown file for the table")
    parser.add_argument("--picture", type=Path, metavar="FILE", default=_PICTURE, help="by default docs/images.png")
    return parser


def compare_parser() -> argparse.ArgumentParser:
    """Return the parser of ``python -m bench compare``."""
    parser = argparse.ArgumentParser(
        prog="python -m bench compare",
        parents=[_common()],
        description="Time two commits of gpuslice alternately in one run; write a table, compare-DATE.md.",
    )
    _add_folder(parser)
    parser.add_argument("base", metavar="BASE", help="the commit to compare with")
    parser.add_argument("head", metavar="HEAD", nargs="?", help="by default the working tree")
    return parser


def _common() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--quick", action="store_true", help="smaller arrays, two widths and fewer rounds")
    parser.add_argument("--case", action="append", help="only cases whose name contains this; may be repeated")
    parser.add_argument("--width", action="append", type=int, help="only items of so many bytes; may be repeated")
    parser.add_argument("--rounds", type=_positive, help="how many times each call is timed, at least")
    parser.add_argument("--mebibytes", type=_positive, help="largest size of a source")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on; got {text}")
    return int(text)


def _compared() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--peer", action="append", type=str.lower, help="only this other library; may be repeated")
    parser.add_argument("--no-chart", action="store_true", help="draw no chart")
    return parser


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for the results")
