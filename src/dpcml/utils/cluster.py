"""Ray: a cluster at an address, or one on this machine for the time of a block."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dpcml.utils.errors import DataError
from dpcml.utils.packages import require

CONNECT_SECONDS = 10.0  # to reach the address of a cluster
START_TRIES = 3  # of Ray on this machine: it gives itself 30 seconds, which are few on a busy one


@contextmanager
def ray_session(address: str | None = None, *, cores: int | None = None) -> Iterator[Any]:
    """Yield the module ``ray``, connected to a cluster; a connection that is there already is used and kept.

    Parameters
    ----------
    address
        ``host:port`` or ``ray://host:port`` of a cluster, ``auto`` for the one that runs on this machine; by default
        $RAY_ADDRESS, and without it Ray is started on this machine for the time of the block.
    cores
        Cores that Ray may hand out if it is started here.

    Raises
    ------
    MissingExtraError
        Ray is not installed.
    DataError
        There is no cluster at the address, or Ray did not start on this machine.
    """
    ray = require("ray", "ray")
    if ray.is_initialized():
        yield ray
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    place = check_address(address)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if place == "local":
        options |= {"num_cpus": cores, "include_dashboard": False}
    for left in range(START_TRIES if place == "local" else 1, 0, -1):
        try:
            ray.init(address=place, **options)
            break
        except Exception as error:  # Ray raises a plain one where a node does not start in time
            ray.shutdown()
            if left == 1:
                raise DataError(_no_start(str(error)) if place == "local" else _nobody(place, str(error))) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def check_address(address: str | None) -> str:
    """Return the address of a cluster, or ``local``; an error at once if nothing listens at ``host:port``.

    Ray itself would try for a minute, and a command would have read its data before.

    Examples
    --------
    >>> check_address("auto")
    'auto'
    """
    place = address or os.environ.get("RAY_ADDRESS") or "local"
    host, colon, port = place.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise DataError(_nobody(place, str(error))) from None
    return place


def _no_start(why: str) -> str:
    return f"Ray did not start on this machine ({' '.join(why.split())[:200]}): try again when it is less busy"


def _nobody(address: str, why: str) -> str:
    reason = " ".join(why.split())[:200]
    return (
        f"no Ray cluster at {address!r} ({reason}): start one with 'ray start --head', name its address,"
        " or leave --address out to start Ray on this machine"
    )
