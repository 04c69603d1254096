import itertools

import numpy as np
import pytest

from dpcml import CML, DPCML, EASE, GFJA, Interactions
from dpcml.data.planted import planted
from dpcml.theory import gap
from dpcml.theory.objective import mean_hinge
from dpcml.utils.errors import DataError, ParameterError


@pytest.fixture(scope="module")
def parts():
    return planted(60, 50, positives=12, n_categories=3, seed=2).data.split((0.6, 0.2, 0.2), 0)


def by_hand(model, positives, parts, margin):
    """The objective, pair by pair."""
    U, V = model.user_vectors_.astype(float), model.item_vectors_.astype(float)
    liked = sum(part.csr.toarray() for part in parts) > 0
    both = (parts[0].per_user > 0) & (parts[2].per_user > 0)
    hinges, psi = [], []
    low, high = model.diversity
    for u in np.flatnonzero(both):
        s = ((U[u][:, None] - V) ** 2).sum(axis=2).min(axis=0)
        pairs = itertools.product(positives.of(u), np.flatnonzero(~liked[u]))
        hinges.append(np.mean([max(0.0, margin + s[i] - s[j]) for i, j in pairs]))
        c = model.n_vectors
        if c > 1:
            apart = sum(((a - b) ** 2).sum() for a, b in itertools.permutations(U[u], 2)) / (2 * c * (c - 1))
            psi.append(max(0, low - apart) + max(0, apart - high))
    return np.mean(hinges), np.mean(psi) if psi else 0.0


@pytest.mark.parametrize("kind", [DPCML, CML, GFJA])
def test_all_pairs_as_by_hand(parts, kind):
    several = {} if kind is CML else {"n_vectors": 3, "diversity_weight": 2.0, "diversity": (0.3, 0.31)}
    model = kind(dim=8, epochs=2, n_candidates=3, margin=0.7, **several).fit(parts[0])
    found = gap(model, parts[2], also_liked=parts[1])
    margin = 1.4 if kind is GFJA else 0.7
    for objective, part in ((found.train, parts[0]), (found.held_out, parts[2])):
        risk, psi = by_hand(model, part, parts, margin)
        assert objective.risk == pytest.approx(risk, rel=1e-4)
        assert objective.diversity == pytest.approx(psi, rel=1e-4, abs=1e-7)
        assert objective.value == pytest.approx(risk + model.diversity_weight * psi, rel=1e-4)
    assert found.value == pytest.approx(found.held_out.risk - found.train.risk)
    assert (found.n_users, found.users_with_both, found.seed) == (60, 60, None)


def test_what_was_learned_by_heart_has_a_larger_gap(parts):
    settings = {"n_vectors": 2, "dim": 8, "n_candidates": 5, "learning_rate": 0.02, "start": "random"}
    short, long = (DPCML(epochs=epochs, **settings).fit(parts[0]) for epochs in (1, 60))
    assert gap(long, parts[2]).value > gap(short, parts[2]).value
    assert gap(long, parts[2]).train.risk < gap(short, parts[2]).train.risk


def test_users_are_drawn_where_there_are_too_many(parts):
    model = CML(dim=8, epochs=2, n_candidates=3).fit(parts[0])
    one, same, other = (gap(model, parts[2], most_scores=50 * 20, seed=seed) for seed in (1, 1, 2))
    assert (one.n_users, one.users_with_both, one.seed) == (20, 60, 1)
    assert one == same
    assert one.value != other.value
    whole = gap(model, parts[2])
    draws = [gap(model, parts[2], most_scores=50 * 30, seed=seed).value for seed in range(30)]
    assert np.mean(draws) == pytest.approx(whole.value, abs=4 * np.std(draws) / 30**0.5)


def test_positives_of_a_third_part_are_no_negatives(parts):
    model = CML(dim=8, epochs=20, n_candidates=3).fit(parts[0])
    assert gap(model, parts[2], also_liked=parts[1]).train.risk != gap(model, parts[2]).train.risk


def test_hinges_of_all_pairs():
    rng = np.random.default_rng(0)
    near, far = rng.random(7), np.sort(rng.random(9))
    pairs = np.maximum(0, 0.3 + near[:, None] - far)
    assert mean_hinge(near, far, 0.3) == pytest.approx(pairs.mean())
    assert mean_hinge(np.zeros(2), np.full(3, 5.0), 1.0) == 0.0


def test_parts_of_something_else_are_refused(parts):
    model = CML(dim=8, epochs=1, n_candidates=3).fit(parts[0])
    with pytest.raises(DataError, match="use parts of one split"):
        gap(model, Interactions.from_csr(np.eye(3)))
    with pytest.raises(DataError, match="no gap to measure"):
        gap(model, Interactions.from_csr(np.zeros((60, 50))))
    with pytest.raises(ParameterError, match="EASE"):
        gap(EASE().fit(parts[0]), parts[2])
