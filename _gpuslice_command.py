"""The command ``gpuslice``: signals are handled from here on, also during the imports, which take tenths of a second.

This is not in the package, since the import of anything in it begins with the import of all of it.
"""

import os
import signal
from contextlib import suppress
from types import FrameType


def stop(number: int, frame: FrameType | None) -> None:
    """Say which signal was received, and end at once: before and after a command there is nothing to put right."""
    with suppress(OSError):
        os.write(2, f"gpuslice: stopped by {signal.Signals(number).name}\n".encode())
    os._exit(128 + number)


def handle_signals() -> None:
    """Call `stop` at SIGINT, SIGTERM and SIGHUP, but for those that are ignored or have a handler already."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, stop)


def main() -> int:
    """Run the command line; `gpuslice.cli.main` says more."""
    handle_signals()
    from gpuslice.cli import main as run

    return run(provisional=stop)
