"""How far a run is."""

import sys
import time


def progress(number: int, count: int, text: str, began: float) -> None:
    """Show on stderr how far a run is: a line that is overwritten, or now and then one for a log."""
    seconds = time.perf_counter() - began
    if sys.stderr.isatty():
        done = 30 * number // count
        bar = f"[{'#' * done}{'.' * (30 - done)}] {number}/{count} {seconds:4.0f} s"
        print(f"\r{bar}  {text:<50}", end="\n" if number == count else "", file=sys.stderr)
    elif number % 10 == 0 or number == count:
        print(f"{number}/{count} {seconds:.0f} s  {text}", file=sys.stderr)
