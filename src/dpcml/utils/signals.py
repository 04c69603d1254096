"""Blocking of signals until a handler is installed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


@contextmanager
def held_back(*signals: signal.Signals) -> Iterator[None]:
    """Block signals within the block; processes that are started there inherit the mask.

    Examples
    --------
    >>> with held_back(signal.SIGHUP):
    ...     signal.raise_signal(signal.SIGHUP)
    ...     caught = signal.sigwait({signal.SIGHUP})
    >>> caught is signal.SIGHUP
    True
    """
    resource_tracker.ensure_running()  # started within the block, it would unblock SIGINT and SIGTERM
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
