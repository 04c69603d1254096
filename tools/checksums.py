"""Checksums of trained models, of iALS and of new users on three small worlds, to notice a change of bits.

``write`` trains them and writes results/checksums.json, ``print`` prints them. The file has them twice: ``fused`` for
processors that multiply and add in one rounding (FMA), ``separate`` for those that do not. What is written is the part
for the processor that Numba compiles for; ``NUMBA_CPU_NAME=generic NUMBA_CPU_FEATURES=`` gives the other on x86-64. A
commit that changes the file says why in CHANGELOG.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np

import dpcml
from dpcml.data.interactions import Interactions
from dpcml.training.init import INITS as STARTS

FILE = Path(__file__).parent.parent / "results" / "checksums.json"

# Every parameter that training reads is named, so that other defaults do not change the checksums.
COMMON: dict[str, Any] = {
    "dim": 100,  # loops that the compiler unrolls, by how much depends on the processor
    "margin": 1.0,
    "n_candidates": 6,
    "pull": 0.0,
    "popularity": 0.0,
    "average": 0.0,
    "epochs": 3,
    "batch_size": 256,
    "learning_rate": 0.01,
    "optimizer": "adam",
    "schedule": "constant",
    "max_user_run": 1,
    "patience": None,
    "random_state": 7,
}
SEVERAL: dict[str, Any] = {"n_vectors": 3, "diversity": (0.05, 0.25), "diversity_per": "user"}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "dpcml": ("DPCML", {**SEVERAL, "negatives": "hard", "diversity_weight": 10.0, "projection": "sphere"}),
    "cml": ("CML", {"negatives": "popularity", "projection": "ball"}),
    "gfja": ("GFJA", {**SEVERAL, "dim": 20, "negatives": "uniform", "diversity_weight": 5.0}),
}
INITS = ("random", "spectral", "clusters")


def worlds() -> dict[str, Interactions]:
    """Return three generated sets: the planted world in small, a sparse one, and a dense one with few items."""
    return {
        "planted": dpcml.planted(200, 120, seed=1).data,
        "sparse": dpcml.planted(300, 400, positives=8, seed=2).data,
        "dense": dpcml.planted(120, 90, positives=24, n_categories=4, seed=3).data,
    }


def start(init: str, data: Interactions) -> str:
    """Return a checksum of initial vectors, which are the same with and without FMA."""
    users, items = STARTS[init](data, 3, 20, np.random.default_rng(7))
    return hashlib.sha256(users.tobytes() + items.tobytes()).hexdigest()[:16]


def checksum(model: str, init: str, data: Interactions) -> str:
    """Return a checksum of the vectors that a model of `MODELS` learns."""
    fitted = trained(model, init, data)
    return hashlib.sha256(fitted.user_vectors_.tobytes() + fitted.item_vectors_.tobytes()).hexdigest()[:16]


def trained(model: str, init: str, data: Interactions) -> Any:
    """Return a trained model of `MODELS`."""
    kind, params = MODELS[model]
    return getattr(dpcml, kind)(**{**COMMON, **params, "init": init}).fit(data)


def fold_in(data: Interactions) -> str:
    """Return a checksum of the vectors of a new user."""
    vectors = trained("dpcml", "random", data).fold_in(list(data.item_ids[:9]))
    return hashlib.sha256(vectors.tobytes()).hexdigest()[:16]


def ials(data: Interactions) -> str:
    """Return a checksum of the vectors of iALS."""
    fitted = dpcml.IALS(dim=100, l2=2.0, epochs=3, random_state=7).fit(data)
    return hashlib.sha256(fitted.user_factors_.tobytes() + fitted.item_factors_.tobytes()).hexdigest()[:16]


def checksums() -> dict[str, dict[str, str]]:
    """Return the checksums of worlds, of starts, by start of models on worlds, of new users and of iALS."""
    made = worlds()
    found = {"data": {name: data.content_hash[:16] for name, data in made.items()}}
    found["start"] = {f"{init} on {name}": start(init, made[name]) for init in INITS for name in made}
    for init in INITS:
        found[init] = {f"{model} on {name}": checksum(model, init, made[name]) for model in MODELS for name in made}
    found["fold-in"] = {f"dpcml on {name}": fold_in(data) for name, data in made.items()}
    found["ials"] = {f"ials on {name}": ials(data) for name, data in made.items()}
    return found


def fused() -> bool:
    """Return whether Numba compiles for a processor with fused multiply-add."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return True
    if numba.config.CPU_NAME == "generic":  # type: ignore[attr-defined]
        return "+fma" in (numba.config.CPU_FEATURES or "")  # type: ignore[attr-defined]
    return bool(llvm.get_host_cpu_features().get("fma"))


def main() -> None:
    """Write the checksums of this processor to the file, or print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("command", choices=["write", "print"])
    command = parser.parse_args().command
    found = {"fused" if fused() else "separate": checksums()}
    if command == "write":
        known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
        FILE.write_text(json.dumps({**known, **found}, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    else:
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
