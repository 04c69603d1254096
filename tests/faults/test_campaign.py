"""A part of the campaign of ``make faults``, of about a minute, and what its results file says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.campaign.__main__ import run_campaign
from tests.faults.campaign.cases import Budget, run_isolated
from tests.faults.campaign.load import growth, measure_leak, own_bytes

pytest.importorskip("fastapi")
ROOT = Path(__file__).parents[2]


def may_mount() -> bool:
    command = ["unshare", "--user", "--map-root-user", "--mount", "true"]
    return shutil.which("unshare") is not None and subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.parametrize(
    ("part", "scale"), [("kills", 0.04), ("damaged_files", 0.03), ("bad_inputs", 0.03), ("disk_full", 0.06)]
)
def test_nothing_fails_in_a_part_of_the_campaign(tmp_path, part, scale):
    if part == "disk_full" and not may_mount():
        pytest.skip("no user namespaces here")
    found = run_campaign([part], Budget(seed=1, scale=scale), tmp_path, say=lambda line: None)
    assert found[part]["failures"] == 0, found[part]["described"]
    assert found[part]["cases"] >= 5


def test_a_server_holds_under_hostile_load(tmp_path):
    found = run_campaign(["load"], Budget(seed=1, scale=0.02), tmp_path, say=lambda line: None)
    assert {name: figures["failures"] for name, figures in found.items()} == {
        "hostile_requests": 0, "reloads": 0, "sound_requests": 0, "worker_kills": 0,
    }, found  # fmt: skip
    assert found["sound_requests"]["cases"] > 0


def test_memory_that_a_server_gains_steadily_is_a_leak_and_a_jump_is_none():
    assert growth([10.0, 10.0, 15.0, 15.0, 15.0, 15.0]) == 0.0
    assert growth([10.0, 12.0, 14.0, 26.0, 28.0, 30.0]) == 2.0
    assert growth([10.0]) == 0.0


MAPS = """
import mmap, sys
with open(sys.argv[1], "rb") as file:
    pages = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE)
pages[::4096]
kept = bytearray(int(sys.argv[2]))
print(flush=True)
sys.stdin.read()
"""


@contextmanager
def process_with(file, size):
    command = [sys.executable, "-c", MAPS, str(file), str(size)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process.pid
        process.stdin.close()


def test_memory_of_a_server_does_not_depend_on_other_processes(tmp_path):
    file = tmp_path / "library"
    file.write_bytes(bytes(16 * 2**20))
    with process_with(file, 0) as one:
        alone = own_bytes(one)
        with process_with(file, 16 * 2**20) as other:  # the file is no longer the first one's alone
            assert abs(own_bytes(one) - alone) < 2**20
            assert own_bytes(other) - alone > 15 * 2**20


def test_a_server_gains_no_memory_with_the_number_of_requests(tmp_path):
    found = measure_leak(tmp_path / "leak", Budget(seed=0, scale=0.1))
    assert found["leak_requests"] == 1000
    assert found["leak_bytes_per_10000_requests"] < 8e6  # 800 bytes of each request would be kept


def crash(folder, rng):
    import ctypes

    if rng.random() < 0.5:
        ctypes.string_at(0)
    return "case", None


def test_a_crash_is_a_failure_and_the_next_case_goes_on(tmp_path):
    found = run_isolated(crash, 6, tmp_path, Budget(seed=0)).to_dict()
    assert found["cases"] == 6
    assert found["failures"] == found["kinds"]["crash"]["cases"] > 0


def test_the_results_file_has_every_part():
    """Failures are shown on the page, not asserted here: the file is what a run found."""
    found = json.loads((ROOT / "results" / "reliability.json").read_text())
    parts = {"kills", "damaged_files", "bad_inputs", "disk_full", "hostile_requests", "reloads"}
    assert {"version", "seed", "command", "leak_bytes_per_10000_requests", *parts} <= found.keys()
    assert all(found[part]["cases"] >= found[part]["failures"] >= 0 for part in parts)


def test_each_finding_of_the_page_names_tests_that_exist():
    text = (ROOT / "docs" / "reliability.md").read_text()
    rows = re.findall(r"^\| (\d+) \|.*\| ([^|]*) \|$", text, flags=re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 22))
    sources = {file: file.read_text() for file in (ROOT / "tests").rglob("test_*.py")}
    for number, named in rows:
        names = re.findall(r"`([^`]+)`", named)
        assert names, number
        for name in names:
            found = (ROOT / name).exists() or any(f"def {name}(" in source for source in sources.values())
            assert found, f"finding {number}: no test {name}"
