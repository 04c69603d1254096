"""Write ``constraints-hashes.txt``: the versions of ``constraints.txt`` with the checksums of their published files.

``pip install --require-hashes --no-deps --requirement constraints-hashes.txt`` installs these files or none. Run this
after a change of ``constraints.txt``.
"""

from __future__ import annotations

import re
import sys
import time
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]
INDEX = "https://pypi.org/simple"
# Files that a supported Python on Linux can use: pure ones, and compiled ones for two processors.
SYSTEM = r"-[\w.]*linux[\w.]*_(x86_64|aarch64)"
USABLE = re.compile(rf"-(py3|py2\.py3)-none-any|-((cp31[123]-cp31[123])|(cp3\d+-abi3)|(py3-none)){SYSTEM}")
# PyTorch without CUDA has an index of its own; 2.13.0+cpu is the same version to pip. The files on PyPI are not listed:
# pip would take one of them, and without its dependencies on CUDA it cannot be imported.
ELSEWHERE = {"torch==2.13.0": ["6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b"]}


def published(name: str) -> dict[str, str]:
    """Return the SHA-256 of all published files of a package, by name."""
    for last in (False, False, True):  # an index that is asked much may break off
        try:
            with urllib.request.urlopen(f"{INDEX}/{name}/", timeout=60) as answer:
                page = answer.read().decode()
            break
        except OSError:
            if last:
                raise
            time.sleep(2)
    found = re.findall(r'href="[^"#]*/([^"#/]+)#sha256=([0-9a-f]{64})"', page)
    return {unquote(file): digest for file, digest in found}


def digests(version: str, files: Mapping[str, str]) -> list[str]:
    """Return the checksums of the usable files of a version; those of its sources where there are none.

    Examples
    --------
    >>> files = {"a_b-1.0-py3-none-any.whl": "12", "a_b-1.0.tar.gz": "34", "a_b-1.0-cp39-cp39-linux_x86_64.whl": "56"}
    >>> digests("1.0", files), digests("1.0", {"a-b-1.0.tar.gz": "34"}), digests("1.1", files)
    (['12'], ['34'], [])
    """
    mine = {file: digest for file, digest in files.items() if f"-{version}-" in file or f"-{version}." in file}
    wheels = {file: digest for file, digest in mine.items() if file.endswith(".whl") and USABLE.search(file)}
    return sorted((wheels or {file: mine[file] for file in mine if file.endswith(".tar.gz")}).values())


def locked(pin: str) -> str:
    """Return a requirement with its checksums."""
    name, version = pin.split("==")
    found = ELSEWHERE.get(pin) or digests(version, published(re.sub(r"[-_.]+", "-", name).lower()))
    if not found:
        raise SystemExit(f"{pin}: no file that could be installed is published; correct constraints.txt")
    return " \\\n".join([pin, *(f"    --hash=sha256:{digest}" for digest in found)])


def main() -> int:
    """Write the file."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if "==" in line and not line.startswith("#")]
    with ThreadPoolExecutor(4) as pool:
        entries = list(pool.map(locked, pins))
    head = "# Written by tools/lock.py from constraints.txt: the same versions, with checksums."
    (ROOT / "constraints-hashes.txt").write_text("\n".join([head, *entries]) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
