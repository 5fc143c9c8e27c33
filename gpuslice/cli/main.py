"""The command line as a whole: a command, its exit code, and one line that says what is wrong."""

import os
import signal
import warnings
from collections import abc
from contextlib import suppress

from gpuslice.cli.interrupts import Handler, Interrupted, interruptible, received
from gpuslice.cli.parser import UsageError, parse
from gpuslice.cli.text import reason, report

_FAILED = 2
_SIGNAL = 128  # a shell adds it to the number of the signal that ended a command
_SIGPIPE = 13
_REFUSALS = (ImportError, IndexError, MemoryError, OSError, OverflowError, RuntimeError, TypeError, ValueError)


def main(arguments: abc.Sequence[str] | None = None, *, provisional: Handler | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the process.
    provisional : callable, optional
        A handler of signals that the command may replace while it runs, as it does the default ones.

    Returns
    -------
    int
        The exit code. 0; 2 after one line on standard error that says what was wrong; 130, 143 and 129 after SIGINT,
        SIGTERM and SIGHUP, with such a line; 141 if nobody reads what is printed any more.
    """
    code, message = 0, ""
    with suppress(Interrupted), interruptible(provisional), warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: report(str(message))
        code, message = _outcome(arguments)
    number = received()
    if number is not None:
        code, message = _SIGNAL + number, f"stopped by {signal.Signals(number).name}"
    if message:
        report(message)
    return code


def _outcome(arguments: abc.Sequence[str] | None) -> tuple[int, str]:
    """Run a command, and return its exit code and what is wrong."""
    try:
        given = parse(arguments)
        given.run(given)
    except BrokenPipeError:
        return _SIGNAL + _SIGPIPE, ""
    except (UsageError, *_REFUSALS) as error:
        file = error.filename if isinstance(error, OSError) else None
        return _FAILED, reason(error) if file is None else f"{os.fsdecode(file)}: {reason(error)}"
    except SystemExit:  # argparse ends so after --help and --version
        pass
    return 0, ""
