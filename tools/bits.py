"""Check that two versions of dpcml train the same bits from the same seed.

``matrices FOLDER`` writes the positives of three data sets. ``train FOLDER OUT.json`` trains `SETTINGS` on them with
the version that ``PYTHONPATH`` names and writes a checksum of the vectors of each. ``compare A.json B.json`` says which
differ, and fails if any does. CONTRIBUTING.md says when to run it.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import scipy.sparse as sp

DATA = ("planted", "ml-100k", "steam-200k")
EPOCHS = 3
SAMPLERS = ("hard", "uniform", "popularity", "two-stage")
OLD_NAMES = {"init": "start", "optimizer": "optimiser", "max_user_run": "together"}  # until commit 9b7cf1d
# Explicit, because defaults have changed since, and random, because other starts were computed by LAPACK until 48aefff.
# A version that does not know a parameter of `NEW` trains without it.
SAME = {"margin": 1.0, "init": "random", "n_candidates": 10, "max_user_run": 2}
NEW = {"pull": 0.0, "popularity": 0.0, "average": 0.0}
Setting = tuple[str, dict[str, Any]]
SETTINGS: list[Setting] = [
    *(("CML", {"negatives": sampler}) for sampler in SAMPLERS),
    *(("DPCML", {"n_vectors": vectors, "negatives": sampler}) for vectors in (1, 2, 4) for sampler in SAMPLERS),
    *(("GFJA", {"n_vectors": vectors}) for vectors in (1, 2, 4)),
    ("GFJA", {"n_vectors": 2, "negatives": "uniform", "diversity_weight": 5.0}),
    ("DPCML", {"n_vectors": 2, "diversity_per": "pair"}),
    ("DPCML", {"n_vectors": 2, "diversity_weight": 0.0}),
    ("DPCML", {"n_vectors": 2, "projection": "ball", "schedule": "cosine"}),
    ("DPCML", {"n_vectors": 2, "optimizer": "adagrad", "learning_rate": 0.05}),
    ("DPCML", {"n_vectors": 2, "max_user_run": 4, "batch_size": 1000}),
    ("DPCML", {"n_vectors": 4, "dim": 33, "n_candidates": 7, "max_user_run": 1}),
]


def write_matrices(folder: Path) -> None:
    """Write the positives of each data set as a sparse matrix."""
    import dpcml

    folder.mkdir(parents=True, exist_ok=True)
    for name in DATA:
        data = dpcml.planted(1000, 800).data if name == "planted" else dpcml.load_dataset(name)
        sp.save_npz(folder / f"{name}.npz", data.csr)


def train(folder: Path) -> dict[str, str]:
    """Return a checksum of the vectors for each setting and data set."""
    import dpcml

    found: dict[str, str] = {}
    for file in sorted(folder.glob("*.npz")):
        likes = sp.load_npz(file)
        for model, params in SETTINGS:
            kind = getattr(dpcml, model)
            known = {field.name for field in dataclasses.fields(kind)}
            given = {**SAME, **{key: value for key, value in NEW.items() if key in known}, **params}
            named = {key if key in known else OLD_NAMES[key]: value for key, value in given.items()}
            fitted = kind(epochs=EPOCHS, random_state=5, **named).fit(likes)
            digest = hashlib.sha256(fitted.user_vectors_.tobytes() + fitted.item_vectors_.tobytes()).hexdigest()
            setting = ", ".join(f"{key}={value}" for key, value in params.items())
            found[f"{file.stem}: {model}({setting})"] = digest
            print(digest[:16], list(found)[-1], flush=True)
    return found


def compare(first: Path, second: Path) -> int:
    """Print which settings differ and return their number."""
    one, two = (json.loads(file.read_text(encoding="utf-8")) for file in (first, second))
    if one.keys() != two.keys():
        raise SystemExit(f"{first} and {second} hold different settings; train both with the same script")
    different = [setting for setting in one if one[setting] != two[setting]]
    print(f"{len(one) - len(different)} of {len(one)} models have the same bits")
    print("".join(f"different: {setting}\n" for setting in different), end="")
    return len(different)


def main() -> None:
    """Run one of the three commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("command", choices=["matrices", "train", "compare"])
    parser.add_argument("paths", nargs="+", type=Path)
    options = parser.parse_args()
    if options.command == "matrices":
        write_matrices(*options.paths)
    elif options.command == "train":
        folder, out = options.paths
        out.write_text(json.dumps(train(folder), indent=2) + "\n", encoding="utf-8")
    else:
        raise SystemExit(compare(*options.paths) > 0)


if __name__ == "__main__":
    main()
