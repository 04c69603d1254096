"""The bound and the gap against values worked out by hand, and their limits."""

import itertools
import math

import numpy as np
import pytest

from dpcml import CML, DPCML, EASE, GFJA, Interactions
from dpcml.data.synthetic import planted
from dpcml.theory import bound, bound_of, gap, mean_hinge
from dpcml.utils.errors import DataError, ParameterError


def world(n_users, n_items=10, liked=2):
    likes = np.zeros((n_users, n_items), dtype=bool)
    likes[:, :liked] = True
    return Interactions.from_csr(likes)


def test_by_hand():
    """Two users: n+ = 1 and 2, n- = 3 and 2; d = 2, eta = 0, r = 0.1."""
    data = Interactions.from_csr(np.array([[1, 0, 0, 0], [1, 1, 0, 0]]))
    found = bound(data, dim=2, weight=0.0, radius=0.1)
    assert found.user_term == pytest.approx(16 / 2)
    assert found.positive_term == pytest.approx(2 / 4 * 1.5)
    assert found.negative_term == pytest.approx(2 / 4 * (1 / 3 + 1 / 2))
    assert found.effective_size == pytest.approx(1 / (16 * 1e-4 * (8 + 0.75 + 5 / 12)))  # 68.18...
    assert found.value == pytest.approx(math.sqrt(4 * math.log(0.3 * 68.181818) / 68.181818))
    # B = 6.4, so 2 (0.3 * 40.96 / (4 * 3.0181))^2 = 2.072
    assert found.log_failure == pytest.approx(math.log(2.0721), rel=1e-3)
    assert found.failure == 1.0
    assert "not below 1" in found.vacuous


def test_the_formula_of_the_paper_as_it_is_written():
    """N~ = (4 r^2 sqrt((4 + eta)^2 / |U| + 2 / |U|^2 sum (1/n+ + 1/n-)))^-2, with users of all kinds."""
    likes = np.random.default_rng(0).random((50, 20)) < 0.3
    likes[:, 0], likes[0], likes[1] = (
        True,
        False,
        True,
    )  # one user without positives, one without negatives: they do not count
    data, r, eta = Interactions.from_csr(likes), 0.7, 3.0
    n = data.per_user[2:]
    inner = (4 + eta) ** 2 / 48 + 2 / 48**2 * sum(1 / a + 1 / (20 - a) for a in n.tolist())
    found = bound(data, dim=5, weight=eta, radius=r)
    assert found.n_users == 48
    assert found.effective_size == pytest.approx((4 * r**2 * math.sqrt(inner)) ** -2)


def test_where_it_says_something_it_says_with_which_probability():
    found = bound(world(20_000), dim=10, weight=0.0, radius=0.1, largest_gap=1.04)
    assert found.value < 0.02
    assert found.vacuous == ""
    size = found.effective_size
    assert found.failure == pytest.approx(2 * (0.3 * 6.4**2 / (20 * math.log(0.3 * size))) ** 10)
    assert 0 < found.failure < 1e-12


def test_it_grows_with_the_dimension():
    values = [bound(world(20_000), dim=d, weight=0.0).value for d in (1, 2, 10, 100)]
    assert values == sorted(values)
    assert values[3] == pytest.approx(10 * values[0]), "with its square root"


def test_it_falls_with_the_number_of_users():
    values = [bound(world(n), dim=4, weight=0.0).value for n in (2_000, 8_000, 32_000, 128_000)]
    assert values == sorted(values, reverse=True)
    sizes = [bound(world(n), dim=4, weight=0.0).effective_size for n in (2_000, 4_000)]
    assert sizes[1] == pytest.approx(2 * sizes[0])


def test_it_grows_with_the_weight_and_falls_with_positives():
    sizes = [bound(world(5_000), dim=4, weight=eta).effective_size for eta in (0.0, 1.0, 10.0)]
    assert sizes == sorted(sizes, reverse=True)
    few, many = (bound(world(5_000, liked=k), dim=4, weight=0.0).effective_size for k in (1, 5))
    assert few < many


def test_it_does_not_depend_on_the_number_of_vectors():
    data = world(30)
    settings = {"dim": 8, "epochs": 1, "n_candidates": 2, "diversity_weight": 3.0, "popularity": 0.0}
    two, three = (bound_of(DPCML(n_vectors=c, **settings).fit(data)) for c in (2, 3))
    assert two == three
    assert (two.weight, two.dim, two.n_users) == (3.0, 8, 30)


def test_one_vector_has_no_diversity_term():
    data = world(30)
    one = bound_of(CML(dim=8, epochs=1, n_candidates=2).fit(data))
    assert one.weight == 0.0
    assert one.largest_gap == 5.0, "margin 1, and squared distances of at most 4"
    settings = {"epochs": 1, "n_candidates": 2, "diversity_weight": 10.0}
    assert bound_of(DPCML(n_vectors=1, dim=8, popularity=0.0, **settings).fit(data)) == one
    assert bound_of(DPCML(n_vectors=1, dim=9, popularity=0.1, **settings).fit(data)) == one, "popularity is not trained"


def test_the_largest_gap_counts_margin_and_diversity():
    settings = {"n_vectors": 2, "dim": 8, "epochs": 1, "n_candidates": 2, "margin": 0.5}
    with_diversity = DPCML(diversity=(0.1, 0.25), diversity_weight=10.0, **settings).fit(world(9))
    assert bound_of(with_diversity).largest_gap == pytest.approx(0.5 + 4 + 10 * (2 - 0.25))
    assert bound_of(GFJA(**settings).fit(world(9))).largest_gap == 5.0, "its margin is doubled in squared distances"


@pytest.mark.parametrize("n_users", [1, 40])
def test_too_small_a_sample_is_said_plainly(n_users):
    found = bound(world(n_users), dim=100, weight=10.0)
    assert found.value == math.inf
    assert found.failure == 1.0
    assert "too small: 3 r N~ must exceed 1" in found.vacuous
    plain = found.to_dict()
    assert plain["value"] is None
    assert plain["log_failure"] is None


def test_a_probability_beyond_all_floats_is_kept_as_a_logarithm():
    found = bound(world(4_000), dim=1_000, weight=10.0)
    assert 2_000 < found.log_failure < 10_000
    assert found.failure == 1.0


def test_what_cannot_be_bounded_is_refused():
    with pytest.raises(DataError, match="no user has both positives and negatives"):
        bound(world(3, liked=10), dim=2, weight=0.0)
    with pytest.raises(ParameterError, match="radius=0"):
        bound(world(3), dim=2, weight=0.0, radius=0)
    with pytest.raises(ParameterError, match="EASE: the theory is about vectors"):
        bound_of(EASE().fit(world(9)))


@pytest.fixture(scope="module")
def parts():
    return planted(60, 50, positives=12, n_categories=3, seed=2).data.split((0.6, 0.2, 0.2), 0)


def by_hand(model, positives, parts, margin):
    """The objective, pair by pair, on the trained coordinates."""
    V = model.trained_items().astype(float)
    U = model.user_vectors_[:, :, : V.shape[1]].astype(float)
    liked = sum(part.csr.toarray() for part in parts) > 0
    both = (parts[0].per_user > 0) & (parts[2].per_user > 0)
    hinges, psi = [], []
    low, high = model.train_config(parts[0]).diversity
    for u in np.flatnonzero(both):
        s = ((U[u][:, None] - V) ** 2).sum(axis=2).min(axis=0)
        pairs = itertools.product(positives.of(u), np.flatnonzero(~liked[u]))
        hinges.append(np.mean([max(0.0, margin + s[i] - s[j]) for i, j in pairs]))
        used = np.unique(U[u], axis=0)  # vectors that a user does not use repeat the first
        c = len(used)
        apart = (
            sum(((a - b) ** 2).sum() for a, b in itertools.permutations(used, 2)) / (2 * c * (c - 1)) if c > 1 else 0
        )
        psi.append(max(0, low - apart) + max(0, apart - high) if c > 1 else 0)
    return np.mean(hinges), np.mean(psi)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [(DPCML, {"popularity": 0.0}), (DPCML, {"n_vectors": "adaptive", "popularity": 0.3}), (CML, {}), (GFJA, {})],
)
def test_all_pairs_as_by_hand(parts, kind, changes):
    several = {} if kind is CML else {"n_vectors": 3, "diversity_weight": 2.0, "diversity": (0.3, 0.31)}
    model = kind(**{"dim": 8, "epochs": 2, "n_candidates": 3, "margin": 0.7, **several, **changes}).fit(parts[0])
    found = gap(model, parts[2], also_liked=parts[1])
    margin = 1.4 if kind is GFJA else 0.7
    for objective, part in ((found.train, parts[0]), (found.held_out, parts[2])):
        risk, psi = by_hand(model, part, parts, margin)
        assert objective.risk == pytest.approx(risk, rel=1e-4)
        assert objective.diversity == pytest.approx(psi, rel=1e-4, abs=1e-7)
        weight = model.train_config(parts[0]).diversity_weight
        assert objective.value == pytest.approx(risk + weight * psi, rel=1e-4)
    assert found.value == pytest.approx(found.held_out.risk - found.train.risk)
    assert (found.n_users, found.users_with_both, found.seed) == (60, 60, None)


def test_what_was_learned_by_heart_has_a_larger_gap(parts):
    settings = {"n_vectors": 2, "dim": 8, "n_candidates": 5, "learning_rate": 0.02, "init": "random"}
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
    with pytest.raises(DataError, match="the gap needs one"):
        gap(model, Interactions.from_csr(np.zeros((60, 50))))
    with pytest.raises(ParameterError, match="EASE"):
        gap(EASE().fit(parts[0]), parts[2])
