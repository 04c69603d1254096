"""Which data a benchmark runs on."""

from __future__ import annotations

from dpcml.data.catalog import load_or_read
from dpcml.data.catalog.find import locate
from dpcml.data.interactions import Interactions
from dpcml.data.synthetic import planted

NAMED = "steam-200k"
USERS, ITEMS, POSITIVES = 3757, 5113, 115_139  # of the named set


def bench_data(wish: str | None = None) -> tuple[str, Interactions]:
    """Return data and what to call it: a named set, a file, or ``planted``, a generated world of Steam-200k's shape.

    Without a wish it is Steam-200k where that is on this machine, else the planted world.

    Examples
    --------
    >>> name, data = bench_data("planted")
    >>> data.n_users, data.n_items
    (3757, 5113)
    """
    if wish is None:
        wish = NAMED if locate(NAMED) else "planted"
    return wish, planted(USERS, ITEMS, positives=POSITIVES / USERS).data if wish == "planted" else load_or_read(wish)
