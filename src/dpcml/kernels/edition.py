"""A number that stands for the source of all kernels: a constant of those that are cached on disk.

Numba looks only at a function's own file and at its constants to tell whether what it cached is still true, not at the
functions of other files that it calls.
"""

from __future__ import annotations

import zlib
from pathlib import Path

EDITION = 1 + zlib.crc32(b"".join(source.read_bytes() for source in sorted(Path(__file__).parent.glob("*.py"))))
