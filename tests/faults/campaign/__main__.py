"""``make faults``: break the library on purpose, count what does not hold, and write ``results/reliability.json``."""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from dpcml.utils.files import write_text
from dpcml.utils.packages import version
from tests.faults.campaign.cases import Budget, Tally, load_once
from tests.faults.campaign.damage import run_damage
from tests.faults.campaign.disk import run_disk_full
from tests.faults.campaign.inputs import run_inputs
from tests.faults.campaign.kills import run_kills
from tests.faults.campaign.load import measure_leak, run_load

PARTS: dict[str, Callable[[Path, Budget], Any]] = {
    "kills": run_kills,
    "damaged_files": run_damage,
    "bad_inputs": run_inputs,
    "disk_full": run_disk_full,
    "load": run_load,
    "leak": measure_leak,
}


def run_campaign(
    parts: Sequence[str], budget: Budget, folder: Path, say: Callable[[str], object] = print
) -> dict[str, Any]:
    """Run parts of the campaign side by side, each on processes of its own, and return their figures by name."""
    found: dict[str, Any] = {}
    started = time.monotonic()
    load_once()
    with ThreadPoolExecutor(len(parts)) as pool:
        running = {pool.submit(PARTS[name], folder / name, budget): name for name in parts}
        for done in as_completed(running):
            result = done.result()
            for key, value in ({running[done]: result} if isinstance(result, Tally) else result).items():
                found[key] = value.to_dict() if isinstance(value, Tally) else value
                say(f"{key}: {_line(found[key])}, {time.monotonic() - started:.0f} s")
    return dict(sorted(found.items()))


def _line(figures: Any) -> str:
    if not isinstance(figures, dict):
        return f"{figures:,}"
    return "\n  ".join([f"{figures['cases']:,} cases, {figures['failures']:,} failures", *figures.get("described", [])])


def failures(found: dict[str, Any]) -> int:
    """Return the number of failures of all parts."""
    return sum(value["failures"] for value in found.values() if isinstance(value, dict))


def main() -> int:
    """Run the campaign; the exit code is 1 if anything failed."""
    options = argparse.ArgumentParser(prog="python -m tests.faults.campaign", description=__doc__)
    options.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    options.add_argument("--minutes", type=float, default=30, help="longest time of all parts together")
    options.add_argument("--scale", type=float, default=1.0, help="share of the cases")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, help="file for the figures")
    given = options.parse_args()
    unknown = [name for name in given.parts if name not in PARTS]
    if unknown:
        options.error(f"no part {unknown[0]!r}; known: {', '.join(PARTS)}")
    folder = Path(tempfile.mkdtemp(prefix="dpcml-faults-"))
    started = time.monotonic()
    budget = Budget(given.seed, given.scale, started + 60 * given.minutes)
    found = run_campaign(given.parts or list(PARTS), budget, folder, lambda line: print(line, flush=True))
    about = {
        "version": version(),
        "python": platform.python_version(),
        "seed": given.seed,
        "scale": given.scale,
        "seconds": round(time.monotonic() - started),
        "command": " ".join(["python -m tests.faults.campaign", *sys.argv[1:]]),
    }
    if given.out is not None:
        write_text(given.out, json.dumps({**about, **found}, indent=1) + "\n")
    failed = failures(found)
    if failed:
        print(f"{failed:,} failures; what they left is in {folder}")
    else:
        shutil.rmtree(folder)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
