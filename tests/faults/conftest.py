"""Conditions that a test process brings about in a process of its own: a read-only system, a full disk."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import dpcml

# A user without a name and without a home, who may write nowhere but to the small file systems that a test asks for.
READ_ONLY = """
mount --make-rprivate / || exit 77
places=$(awk '{print $5}' /proc/self/mountinfo)
[ "$OPEN" ] || for place in $places; do mount -o remount,bind,ro "$place" 2>/dev/null; done
for place in $WRITABLE; do mount -t tmpfs -o "size=${ROOM:-64m},mode=1777" none "$place" || exit 77; done
exec unshare --user "$@"
"""


@pytest.fixture
def in_container(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command as a nameless user on a read-only system, as a hardened container would."""

    def command(
        words: Sequence[Any], writable: Sequence[Any] = (), room: str = "64m", read_only: bool = True, **more: str
    ) -> list[str]:
        script = tmp_path / "read-only.sh"
        script.write_text(READ_ONLY)
        source = Path(dpcml.__file__).parents[1]
        given = {"PATH": os.environ["PATH"], "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", **more}
        inner = ["env", "-i", *(f"{name}={value}" for name, value in given.items()), *map(str, words)]
        outer = ["env", f"WRITABLE={' '.join(map(str, writable))}", f"ROOM={room}", f"OPEN={'' if read_only else 1}"]
        return [*outer, "unshare", "--user", "--map-root-user", "--mount", "sh", str(script), *inner]

    if shutil.which("unshare") is None or subprocess.run(command(["true"]), capture_output=True).returncode:
        pytest.skip("no user namespaces here")

    def run(words: Sequence[Any], **given: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command(words, **given), capture_output=True, text=True, cwd=tmp_path, check=False)

    run.command = command  # type: ignore[attr-defined]
    return run
