"""How the kernels of training are compiled."""

from __future__ import annotations

from typing import Any

# Sums may be reordered into lanes, the same way on every thread; NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}
# References are not counted (_nrt): arrays live as long as the call, and counting took a third of the time.
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": FAST, "error_model": "numpy", "_nrt": False}
