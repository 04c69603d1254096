"""Whether training is any good: what the planted world must show, and a band on real data that a fault would miss."""

import numpy as np
import pytest

from dpcml import CML, DPCML, evaluate
from dpcml.data import load_dataset
from dpcml.data.synthetic import planted


@pytest.mark.parametrize("seed", [0, 1])
def test_several_vectors_serve_minority_interests(seed):
    """Over four seeds DPCML found 1.37 to 1.51 times the minority items that CML found with the same settings."""
    world = planted(1000, 400, majority_share=0.5, noise=0.02, seed=seed)
    train, valid, test = world.data.split((0.6, 0.2, 0.2), seed)
    settings = {
        "dim": 8,
        "n_candidates": 10,
        "epochs": 30,
        "learning_rate": 0.01,
        "init": "spectral",
        "random_state": seed,
    }
    cml = CML(**settings).fit(train)
    dpcml = DPCML(**settings, n_vectors=3, diversity=(0.2, 0.5)).fit(train)
    one, several = (evaluate(model, train, test, valid=valid, k=10).metrics for model in (cml, dpcml))
    assert several["minority_R@10"] > 1.25 * one["minority_R@10"]
    assert several["R@10"] > 1.1 * one["R@10"]


def test_steam_is_learned_as_well_as_a_sound_engine_learns_it(real_data):
    """Three seeds gave P@3 0.311 to 0.318 and MRR 0.532 to 0.537; without DCRS 0.294 to 0.301 and 0.506 to 0.517.

    The band was set on this split after seeing these figures: it guards against change, it is no claim of quality. With
    one fault each, on an engine whose sound runs gave 0.292 to 0.302 and 0.507 to 0.522: farthest candidate
    0.00, 0.03; same candidates for all positives
    0.02, 0.07; candidates from half of the catalogue 0.08, 0.17; the mean of the vectors in place of the nearest 0.21,
    0.40; always the first vector trained 0.26, 0.47. (That engine had a clock of its own for every row in Adam.)
    """
    train, valid, test = load_dataset("steam-200k").split((0.6, 0.2, 0.2), 0)
    model = DPCML(
        n_vectors=5, dim=100, margin=1.0, negatives="hard", n_candidates=30, diversity=(0.05, 0.25),
        diversity_weight=10.0, init="random", learning_rate=0.01, schedule="constant", batch_size=256, epochs=20,
        random_state=0,
    ).fit(train)  # fmt: skip
    found = evaluate(model, train, test, valid=valid, protocol="released", metrics="accuracy", k=3).metrics
    assert 0.304 < found["P@3"] < 0.326
    assert 0.524 < found["MRR"] < 0.548
    U = model.user_vectors_
    halves = (((U**2).sum(axis=(1, 2)) * 5) - (U.sum(axis=1) ** 2).sum(axis=1)) / 20
    assert 0.05 < np.median(halves) < 0.26, "DCRS holds the vectors of most users within its bounds"
