"""Signals that are held back while nobody can take them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


@contextmanager
def held_back(*signals: signal.Signals) -> Iterator[None]:
    """Hold signals back within the block; processes that are started there hold them back until they say otherwise.

    Examples
    --------
    >>> with held_back(signal.SIGHUP):
    ...     signal.raise_signal(signal.SIGHUP)
    ...     caught = signal.sigwait({signal.SIGHUP})
    >>> caught is signal.SIGHUP
    True
    """
    resource_tracker.ensure_running()  # else multiprocessing would start it within, and let the signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
