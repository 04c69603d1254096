"""Finding 2: the package runs where it can write nowhere, as in a non-root container with a read-only root.

These are the conditions of the ``Dockerfile``, brought about with ``unshare`` where there is nothing to build it with.
"""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from dpcml import ItemKNN, save

ROOT = Path(__file__).parents[2]
KERNEL = """
import numpy as np
import dpcml
from dpcml.kernels.sampling import fill_filters

filters = np.zeros(3, np.uint64)
fill_filters(np.array([0, 3, 5]), np.array([1, 4, 9, 2, 7], np.int32), filters)
print(sum(fill_filters.stats.cache_hits.values()), filters.any())
"""


def test_without_any_writable_folder_kernels_compile_without_a_cache_and_one_line_says_so(in_container, tmp_path):
    done = in_container([sys.executable, "-c", KERNEL])
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0 True\n"
    assert done.stderr.count("\n") == 1
    assert "no folder for compiled kernels can be written" in done.stderr
    assert not [file for file in tmp_path.iterdir() if file.name.startswith("~")]


@pytest.mark.parametrize("home", [{}, {"HOME": "~"}, {"HOME": "/nonexistent"}])
def test_without_a_home_the_kernels_are_kept_among_the_temporary_files(in_container, tmp_path, home):
    """The second process loads what the first compiled: both see the same tmpfs, so they run in one shell."""
    (tmp_path / "temporary").mkdir()
    (tmp_path / "here").mkdir()
    both = 'cd here && $1 -c "$2" && $1 -c "$2"; find . -mindepth 1'
    done = in_container(
        ["sh", "-c", both, "sh", sys.executable, KERNEL],
        writable=[tmp_path / "temporary", tmp_path / "here"], TMPDIR=str(tmp_path / "temporary"), **home,
    )  # fmt: skip
    assert done.stdout == "0 True\n1 True\n", done.stderr  # and nothing was made in the current folder
    assert done.stderr.count("\n") == 2, "one line for each process"
    assert "among the temporary files" in done.stderr


def test_a_cache_on_a_full_disk_is_left_alone(in_container, tmp_path):
    (tmp_path / "small").mkdir()
    done = in_container(
        [sys.executable, "-c", KERNEL],
        writable=[tmp_path / "small"],
        room="4k",
        NUMBA_CACHE_DIR=str(tmp_path / "small"),
    )
    assert (done.returncode, done.stdout) == (0, "0 True\n"), done.stderr
    assert done.stderr.count("\n") == 1
    assert "compiled kernels cannot be kept" in done.stderr


def test_the_server_answers_on_a_read_only_system(in_container, tmp_path):
    """The command and the health check are those of the Dockerfile."""
    pytest.importorskip("fastapi")
    save(ItemKNN(k=2).fit(np.kron(np.eye(2), np.ones((3, 4)))), tmp_path / "model")
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    words = json.loads(re.search(r"^CMD (\[.*\])$", lines, re.MULTILINE).group(1))
    check = json.loads(re.search(r"^HEALTHCHECK .*CMD (\[.*\])\s*$", lines, re.MULTILINE).group(1))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    words = [word.replace("/model", str(tmp_path / "model")).replace("8000", port) for word in words]
    assert words[0] == "dpcml"
    command = in_container.command([sys.executable, "-m", *words], DPCML_THREADS="1")
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as server:
        try:
            health = f"http://127.0.0.1:{port}/health"
            while server.poll() is None:
                try:
                    with urllib.request.urlopen(health, timeout=60) as answer:
                        assert answer.status == 200
                    break
                except (urllib.error.URLError, ConnectionError):
                    time.sleep(0.2)
            assert server.poll() is None, server.stderr.read()
            healthy = [sys.executable, *(word.replace("8000", port) for word in check[1:])]
            assert subprocess.run(healthy, check=False).returncode == 0
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
    assert subprocess.run(healthy, check=False, stderr=subprocess.DEVNULL).returncode != 0


def test_the_image_is_not_run_by_root_and_its_kernels_are_in_a_volume():
    lines = (ROOT / "Dockerfile").read_text()
    users = re.findall(r"^USER (\S+)", lines, re.MULTILINE)
    assert users
    assert users[-1].partition(":")[0].isdigit()
    assert users[-1].partition(":")[0] != "0"
    assert re.search(r"^HEALTHCHECK ", lines, re.MULTILINE)
    warmed, used = re.findall(r"NUMBA_CACHE_DIR=(\S+)", lines)
    assert warmed == used
    assert re.search(rf"^VOLUME {used}$", lines, re.MULTILINE), "a read-only folder of kernels is not used"
    assert "doctor --warm" in lines
