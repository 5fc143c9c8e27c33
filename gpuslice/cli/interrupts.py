"""SIGINT, SIGTERM and SIGHUP as an exception, so that a command removes its temporary file before it ends."""

import signal
import threading
from collections import abc
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeAlias

Handler: TypeAlias = abc.Callable[[int, FrameType | None], Any]


class Interrupted(BaseException):
    """One of the signals was received."""


class Interrupts:
    """The handler of the signals.

    Attributes
    ----------
    received : int or None
        The first signal. Later ones change nothing: the command is already on its way out.
    held : bool
        Whether a signal is only noted for now.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self.held = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.received is None:
            self.received = number
            if not self.held:
                raise Interrupted


_current = Interrupts()


def received() -> int | None:
    """Return the first signal since `interruptible` began; None if there was none."""
    return _current.received


@contextmanager
def interruptible(provisional: Handler | None = None) -> abc.Iterator[None]:
    """Raise `Interrupted` at SIGINT, SIGTERM and SIGHUP. Handlers that a program has set stay, except ``provisional``.

    The exception may also leave this block while it ends, so the caller catches it outside.
    """
    _current.received, _current.held = None, True
    is_main = threading.current_thread() is threading.main_thread()
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP] if is_main else []
    replaced = (signal.SIG_DFL, signal.default_int_handler, provisional or signal.SIG_DFL)
    before = {number: signal.signal(number, _current) for number in numbers if signal.getsignal(number) in replaced}
    try:
        with uninterrupted():  # what came while the handlers were set
            pass
        yield
    finally:
        _current.held = True
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def uninterrupted() -> abc.Iterator[None]:
    """Finish this block first if a signal is received in it."""
    _current.held = True
    try:
        yield
    finally:
        _current.held = False
    if _current.received is not None:
        raise Interrupted
