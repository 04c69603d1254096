"""Check that two versions of dpcml train the same bits from the same seed.

``matrices FOLDER`` writes the positives of three data sets. ``train FOLDER OUT.json`` trains `SETTINGS` on them with
the version that ``PYTHONPATH`` names and writes a checksum of the arrays of each, and a hash of the code of every
model. ``compare A.json B.json`` says which checksums differ, and fails if any does. ``renew A.json B.json`` compares
too; if all are the same, it puts the code of version B in place of that of version A into the fingerprints of all
results. CONTRIBUTING.md says when to run it.
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
RESULTS = Path(__file__).parents[1] / "results"
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
    ("GMF", {}),  # PyTorch models share their batches
]


def write_matrices(folder: Path) -> None:
    """Write the positives of each data set as a sparse matrix."""
    import dpcml

    folder.mkdir(parents=True, exist_ok=True)
    for name in DATA:
        data = dpcml.planted(1000, 800).data if name == "planted" else dpcml.load_dataset(name)
        sp.save_npz(folder / f"{name}.npz", data.csr)


def train(folder: Path) -> dict[str, str]:
    """Return a checksum of the arrays for each setting and data set."""
    import dpcml

    found: dict[str, str] = {}
    for file in sorted(folder.glob("*.npz")):
        likes = sp.load_npz(file)
        for model, params in SETTINGS:
            kind = getattr(dpcml, model)
            known = {field.name for field in dataclasses.fields(kind)}
            shared = SAME if "margin" in known else {}
            given = {**shared, **{key: value for key, value in NEW.items() if key in known}, **params}
            named = {key if key in known else OLD_NAMES[key]: value for key, value in given.items()}
            fitted = kind(epochs=EPOCHS, random_state=5, **named).fit(likes)
            arrays = fitted.to_arrays()
            digest = hashlib.sha256(b"".join(arrays[key].tobytes() for key in sorted(arrays))).hexdigest()
            setting = ", ".join(f"{key}={value}" for key, value in params.items())
            found[f"{file.stem}: {model}({setting})"] = digest
            print(digest[:16], list(found)[-1], flush=True)
    return found


def codes() -> dict[str, str]:
    """Return a hash of the code of each model and preset, as fingerprints of results have it."""
    from dpcml.models import MODELS
    from dpcml.models.presets import PRESETS
    from dpcml.paper.fingerprint import model_code

    return {name: model_code(name) for name in sorted({*MODELS, *PRESETS})}


def compare(first: Path, second: Path) -> int:
    """Print which settings differ and return their number."""
    one, two = (_read(file)["bits"] for file in (first, second))
    if one.keys() != two.keys():
        raise SystemExit(f"{first} and {second} hold different settings; train both with the same script")
    different = [setting for setting in one if one[setting] != two[setting]]
    print(f"{len(one) - len(different)} of {len(one)} models have the same bits")
    print("".join(f"different: {setting}\n" for setting in different), end="")
    return len(different)


def renew(first: Path, second: Path, results: Path = RESULTS) -> int:
    """Put the code of the second version into fingerprints that have that of the first; return how many changed."""
    if compare(first, second):
        raise SystemExit("the bits differ: the results must be made again")
    old, new = (_read(file)["codes"] for file in (first, second))
    changed = {old[name]: new[name] for name in old.keys() & new.keys() if old[name] != new[name]}
    count = 0
    for file in sorted(results.rglob("*.csv")):
        text = before = file.read_text(encoding="utf-8")
        for code, other in changed.items():
            count += before.count(f"{code}-")
            text = text.replace(f"{code}-", f"{other}-")
        if text != before:
            file.write_text(text, encoding="utf-8")
    print(f"{count} fingerprints renewed")
    return count


def _read(file: Path) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(file.read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("command", choices=["matrices", "train", "compare", "renew"])
    parser.add_argument("paths", nargs="+", type=Path)
    options = parser.parse_args()
    if options.command == "matrices":
        write_matrices(*options.paths)
    elif options.command == "train":
        folder, out = options.paths
        found = {"bits": train(folder), "codes": codes()}
        out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    elif options.command == "renew":
        renew(*options.paths)
    else:
        raise SystemExit(compare(*options.paths) > 0)


if __name__ == "__main__":
    main()
