"""Search for good parameters, then train with them and test once.

`tune` only sees the training and validation parts of its split, so the test part stays untouched until the end. It
needs optuna: ``pip install -e '.[tune]'``.
"""

import tempfile
from pathlib import Path

from dpcml import create, evaluate, planted, tune

data = planted(300, 200, seed=3).data
trials = Path(tempfile.mkdtemp()) / "trials.csv"  # a search that was interrupted goes on from this file

found = tune(data, "itemknn", budget=12, metric="NDCG@10", seed=0, split_seed=0, file=trials)
print(f"best of {found.trials} trials: {found.best_parameters}, {found.metric} {found.best_value:.4f}")

# The same split as the search used: its test part is still unseen.
train, valid, test = data.split((0.6, 0.2, 0.2), rng=0)
assert train.split_hash == found.split
for label, parameters in {"defaults": {}, "tuned": found.best_parameters}.items():
    model = create("itemknn", **parameters).fit(train)
    report = evaluate(model, train, test, valid=valid, metrics=["NDCG@10", "R@10"], label=label)
    print(f"{label:<9} NDCG@10 {report.metrics['NDCG@10']:.4f}  R@10 {report.metrics['R@10']:.4f}")
