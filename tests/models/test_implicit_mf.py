import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from dpcml import BPR, IALS, Interactions, load, save
from dpcml.utils.errors import DataError, MissingExtraError, ParameterError

implicit = pytest.importorskip("implicit")
threadpoolctl = pytest.importorskip("threadpoolctl")
BOTH = pytest.mark.parametrize("kind", [IALS, BPR])


@pytest.fixture(scope="module")
def parts(blocks):
    return blocks.split((0.6, 0.2, 0.2), np.random.default_rng(1))


@BOTH
def test_the_seed_matters_and_nothing_else_does(kind, parts):
    first = kind(dim=4, epochs=4).fit(parts.train)
    np.random.seed(5)  # noqa: NPY002 (a stranger's)
    again, other = kind(dim=4, epochs=4).fit(parts.train), kind(dim=4, epochs=4, random_state=1).fit(parts.train)
    assert first.item_factors_.tobytes() == again.item_factors_.tobytes()
    assert first.item_factors_.tobytes() != other.item_factors_.tobytes()


@BOTH
def test_the_best_state_on_the_validation_part_is_kept(kind, parts):
    seen = []
    model = kind(dim=12, l2=1e-3, epochs=30, validate_every=1, patience=3)
    model.fit(parts.train, parts.valid, callbacks=[lambda history: seen.append(history.epochs[-1].validation)])
    best = model.history_.best
    assert len(seen) <= best.number + 3
    assert best.validation == max(seen)
    again = kind(**{**model.get_params(), "epochs": best.number}).fit(parts.train)
    assert again.score(np.arange(60)).tobytes() == model.score(np.arange(60)).tobytes()


@BOTH
def test_loaded_it_scores_without_implicit(kind, parts, tmp_path):
    save(kind(dim=4, epochs=3).fit(parts.train), tmp_path / "m")
    code = """
import sys
sys.modules["implicit"] = None  # an import of it fails
from dpcml import load
model = load(sys.argv[1])
print(model.recommend("user-3", n=2)[0].tolist(), model.history_.epochs[-1].number)
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "m"], capture_output=True, text=True, check=True)
    ids = load(tmp_path / "m").recommend("user-3", n=2)[0].tolist()
    assert done.stdout.strip() == f"{ids} 3"


def test_without_implicit_there_is_a_word_on_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "implicit", None)
    with pytest.raises(MissingExtraError, match=r"implicit is not installed: pip install .*\[peers\]'"):
        BPR().fit(np.eye(3))


def test_models_are_known_without_an_import_of_implicit():
    code = "import sys; from dpcml.models import create; create('bpr'); print('implicit' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@BOTH
@pytest.mark.parametrize(
    ("name", "value"), [("dim", 0), ("epochs", 0), ("validate_every", 0), ("patience", 0), ("random_state", -1)]
)
def test_bad_common_parameters(kind, name, value):
    with pytest.raises(ParameterError, match=f"{name}="):
        kind(**{name: value})


@BOTH
def test_an_unknown_metric_is_refused_before_training(kind):
    with pytest.raises(ParameterError, match="metric"):
        kind(metric="P")


def test_validation_has_the_threads_that_were_asked_for(parts, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "dpcml.evaluation.ranks.over_rows", lambda work, n, threads: (asked.append(threads), work(0, n))
    )
    IALS(dim=4, epochs=1, n_threads=1).fit(parts.train, parts.valid)
    assert asked
    assert set(asked) == {1}


def normal_equations(likes, other, l2, confidence):
    """Solve for each row of likes against the fixed vectors of the other side."""
    solved = []
    for row in likes:
        weights = np.where(row > 0, confidence, 1.0)
        solved.append(
            np.linalg.solve((other.T * weights) @ other + l2 * np.eye(other.shape[1]), other.T @ (weights * row))
        )
    return np.array(solved)


def test_ials_ends_where_neither_side_can_be_improved(parts):
    model = IALS(dim=3, l2=2.0, confidence=5.0, epochs=300).fit(parts.train)
    likes = parts.train.csr.toarray()
    users, items = model.user_factors_, model.item_factors_
    assert np.abs(users).max() > 0.1
    np.testing.assert_allclose(users, normal_equations(likes, items, 2.0, 5.0), atol=1e-3)
    np.testing.assert_allclose(items, normal_equations(likes.T, users, 2.0, 5.0), atol=1e-3)


def test_ials_ends_as_low_as_the_package_implicit(parts):
    settings = {"factors": 6, "regularization": 2.0, "alpha": 5.0, "iterations": 300, "random_state": 0}
    with threadpoolctl.threadpool_limits(1, "blas"):
        theirs = implicit.als.AlternatingLeastSquares(**settings, use_gpu=False, num_threads=1)
        theirs.fit(sparse.csr_matrix(parts.train.csr), show_progress=False)
    ours = IALS(dim=6, l2=2.0, confidence=5.0, epochs=300).fit(parts.train)
    likes = parts.train.csr.toarray()

    def objective(users, items):
        weights = np.where(likes > 0, 5.0, 1.0)
        return np.sum(weights * (likes - users @ items.T) ** 2) + 2.0 * (np.sum(users**2) + np.sum(items**2))

    found, expected = (
        objective(*factors)
        for factors in ((ours.user_factors_, ours.item_factors_), (theirs.user_factors, theirs.item_factors))
    )
    assert found < 1.01 * expected, "both end in local optima"


def test_the_loss_of_ials_is_the_mean_error_of_all_pairs(parts):
    model = IALS(dim=5, l2=2.0, confidence=5.0, epochs=2).fit(parts.train)
    likes = parts.train.csr.toarray()
    weights = np.where(likes > 0, 5.0, 1.0)
    error = np.sum(weights * (likes - model.score(np.arange(60))) ** 2) / weights.sum()
    assert model.history_.epochs[-1].loss == pytest.approx(error, rel=1e-4)


def test_users_and_items_without_positives_have_zero_vectors():
    likes = np.zeros((4, 5))
    likes[:3, :4] = [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]]
    model = IALS(dim=2, l2=0.1).fit(Interactions.from_csr(likes))
    assert not model.user_factors_[3].any()
    assert not model.item_factors_[4].any()


def test_products_for_new_users_are_those_of_the_last_fit(parts):
    model = IALS(dim=4).fit(parts.train)
    model.ridge_products()
    model.set_params(l2=9.0).fit(parts.train)
    items = model.item_factors_.astype(float)
    np.testing.assert_allclose(model.ridge_products(), items.T @ items + 9 * np.eye(4))


def test_a_new_user_of_ials_gets_the_ridge_solution(parts):
    model = IALS(dim=4, l2=3.0, confidence=7.0).fit(parts.train)
    likes = np.zeros((2, 40))
    likes[0, [1, 5, 30]] = likes[1, 2] = 1
    expected = normal_equations(likes, model.item_factors_.astype(float), 3.0, 7.0) @ model.item_factors_.T
    np.testing.assert_allclose(model.score_new([[101, 105, 130], [102]]), expected, atol=1e-5)


def test_ials_gives_the_same_bits_on_any_number_of_threads(parts):
    one, three = (IALS(dim=5, n_threads=threads).fit(parts.train) for threads in (1, 3))
    assert one.user_factors_.tobytes() == three.user_factors_.tobytes()
    assert one.item_factors_.tobytes() == three.item_factors_.tobytes()


def test_the_penalty_grows_with_the_data_by_default(parts):
    mean = parts.train.n_positives / parts.train.n_users
    by_default, given = (IALS(dim=3, l2=l2).fit(parts.train) for l2 in (None, mean))
    assert by_default.score([3]).tobytes() == given.score([3]).tobytes()
    assert by_default.score_new([105]).tobytes() == given.score_new([105]).tobytes()


@pytest.mark.parametrize(("name", "value"), [("l2", 0), ("l2", -1), ("confidence", 0), ("n_threads", 0)])
def test_bad_parameters_of_ials(name, value):
    with pytest.raises(ParameterError, match=f"{name}="):
        IALS(**{name: value})


def test_bpr_draws_anew_in_every_epoch(parts):
    short, longer = (BPR(dim=4, epochs=epochs, validate_every=1).fit(parts.train) for epochs in (20, 200))
    losses = [epoch.loss for epoch in longer.history_.epochs]
    assert losses[:20] == [epoch.loss for epoch in short.history_.epochs]
    assert len(set(losses[-50:])) > 10
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) < 0.7


def test_a_bias_is_learned_and_is_no_part_of_similarity(parts):
    model = BPR(dim=4, epochs=50).fit(parts.train)
    assert (model.user_factors_[:, 4] == 1).all()
    assert np.ptp(model.item_factors_[:, 4]) > 0.1
    before = model.similar_items(105)
    model.item_factors_[:, 4] += 100
    assert (model.similar_items(105)[1] == before[1]).all()


def test_steps_that_leap_too_far_are_an_error_with_a_way_out():
    data = Interactions.from_csr(np.random.default_rng(0).random((20, 15)) < 0.3)
    with pytest.raises(DataError, match="lower the learning rate"):
        BPR(learning_rate=1e30, l2=1e30).fit(data)


@pytest.mark.parametrize(("name", "value"), [("l2", -1), ("learning_rate", 0), ("learning_rate", "fast")])
def test_bad_parameters_of_bpr(name, value):
    with pytest.raises(ParameterError, match=f"{name}="):
        BPR(**{name: value})
