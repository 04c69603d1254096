"""EASE: every form against the closed solution."""

import numpy as np
import pytest
from scipy import sparse

from dpcml import EASE, Interactions, load, planted, save
from dpcml.evaluation.evaluate import validation
from dpcml.models import ease
from dpcml.utils.errors import DataError, ParameterError


@pytest.fixture
def likes():
    likes = (np.random.default_rng(0).random((40, 90)) < 0.15).astype(float)
    likes[7] = 0  # a user and an item without positives
    likes[:, 4] = 0
    return likes


def test_weights_are_the_closed_form_solution():
    rng = np.random.default_rng(0)
    likes = (rng.random((80, 13)) < 0.3).astype(float)
    model = EASE(l2=2.0).fit(likes)
    inverse = np.linalg.inv(likes.T @ likes + 2.0 * np.eye(13))
    expected = -inverse / np.diag(inverse)
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(model.weights_, expected, atol=1e-6)
    np.testing.assert_allclose(model.score(np.arange(80)), likes @ expected, atol=1e-5)


def test_weights_are_put_together_from_blocks():
    rng = np.random.default_rng(0)
    full = rng.standard_normal((2100, 2100))
    full = full + full.T + 100 * np.eye(2100)
    expected = -full / np.diag(full)
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(ease._weights(np.triu(full)), expected, rtol=1e-5)


@pytest.mark.parametrize("l2", [0, -1.0, np.inf, np.nan])
def test_bad_penalty(l2):
    with pytest.raises(ParameterError, match="l2="):
        EASE(l2=l2)


def test_too_much_for_the_machine(monkeypatch):
    monkeypatch.setattr(ease.os, "sysconf", lambda name: 4096 if name == "SC_PAGE_SIZE" else 1)
    for form, shape in (("dense", (2, 50)), ("dual", (50, 2)), ("sparse", (50, 60))):
        with pytest.raises(DataError, match=rf"EASE on {max(shape) if form != 'sparse' else 60} .* in the {form} form"):
            EASE(form=form).fit(np.ones(shape))


@pytest.mark.parametrize("l2", [0.5, 100.0])
def test_the_dual_form_has_the_scores_of_the_dense_one(likes, l2):
    dense, dual = (EASE(l2=l2, form=form).fit(likes) for form in ("dense", "dual"))
    np.testing.assert_allclose(dual.score(np.arange(40)), dense.score(np.arange(40)), atol=2e-5)
    histories = [[3, 50, 51], [4]]  # item 4 has no users
    np.testing.assert_allclose(dual.score_new(histories), dense.score_new(histories), atol=2e-5)
    assert dual.similar_items(3, n=5)[0].tolist() == dense.similar_items(3, n=5)[0].tolist()
    assert dual._similarity(np.arange(90)).diagonal().tolist() == pytest.approx([0] * 90, abs=1e-5)


def test_dense_and_sparse_products_agree(likes, monkeypatch):
    model = EASE(form="dual").fit(likes)
    found = model.score(np.arange(40))
    monkeypatch.setattr(ease, "DENSE", 2.0)
    np.testing.assert_allclose(model.score(np.arange(40)), found, atol=1e-6)


def by_hand(likes, l2, k):
    """Ridge regressions of each item on its k best neighbours, dense."""
    gram = likes.T @ likes
    count, weights = np.diag(gram), np.zeros_like(gram)
    for j in range(len(gram)):
        value = gram[j] / np.sqrt(count + l2)
        value[j] = 0
        near = np.argsort(-value, kind="stable")[:k]
        near = near[value[near] > 0]
        system = gram[np.ix_(near, near)] + l2 * np.eye(len(near))
        weights[near, j] = np.linalg.solve(system, gram[near, j])
    return weights


@pytest.mark.parametrize(("l2", "k"), [(2.0, 5), (2.0, 1), (50.0, 1000)])
def test_the_sparse_form_is_a_regression_on_neighbours(likes, l2, k):
    model = EASE(l2=l2, form="sparse", k=k).fit(likes)
    np.testing.assert_allclose(model.weights_.toarray(), by_hand(likes, l2, k), atol=1e-6)
    np.testing.assert_allclose(model.score(np.arange(40)), likes @ by_hand(likes, l2, k), atol=1e-5)


def test_with_all_other_items_as_neighbours_the_sparse_form_is_exact():
    likes = (np.random.default_rng(0).random((300, 20)) < 0.4).astype(float)  # every pair has common users
    sparse_form, dense = (EASE(l2=3.0, form=form, k=19).fit(likes) for form in ("sparse", "dense"))
    np.testing.assert_allclose(sparse_form.weights_.toarray(), dense.weights_, atol=1e-6)


def test_threads_do_not_matter(likes, monkeypatch):
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("DPCML_THREADS", threads)
        found.append(EASE(form="sparse", k=9).fit(likes).weights_.toarray())
    assert (found[0] == found[1]).all()


def test_the_form_follows_the_size(monkeypatch):
    def of(n_users, n_items):
        return ease.choose_form(Interactions.from_csr(sparse.csr_array((n_users, n_items))))

    assert of(10, 5_000) == of(6_000, 6_000) == of(100_000, 20_000) == "dense"
    assert of(10, 5_001) == of(5_219, 25_181) == of(20_000, 20_001) == "dual"
    assert of(20_001, 20_001) == "sparse"


@pytest.mark.parametrize("form", ["dense", "dual", "sparse"])
def test_each_form_is_saved_and_loaded(likes, form, tmp_path):
    model = EASE(form=form, k=7).fit(likes)
    again = load(model.save(tmp_path / "ease"))
    assert again.form_ == form
    assert again.score(np.arange(40)).tobytes() == model.score(np.arange(40)).tobytes()


def test_bad_form():
    with pytest.raises(ParameterError, match="form='spars': did you mean 'sparse'"):
        EASE(form="spars")
    with pytest.raises(ParameterError, match="k=0"):
        EASE(k=0)


@pytest.mark.parametrize("form", ["dense", "dual", "sparse"])
def test_popular_items_are_penalised_by_a_power_of_their_likes(form):
    likes = sparse.csr_array((np.random.default_rng(3).random((30, 12)) < np.linspace(0.1, 0.9, 12)).astype(np.float32))
    plain, penalised = (EASE(l2=3.0, form=form, beta=beta).fit(likes) for beta in (0.0, 0.5))
    expected = plain.score(range(30)) / np.sqrt(np.maximum(plain.train_.per_item, 1))
    np.testing.assert_allclose(penalised.score(range(30)), expected, rtol=1e-5)
    np.testing.assert_allclose(
        penalised.score_new([0, 5]), plain.score_new([0, 5]) / np.sqrt(np.maximum(plain.train_.per_item, 1)), rtol=1e-5
    )


def test_parameters_are_found_on_the_validation_part_and_kept(tmp_path):
    train, valid, _ = planted(150, 120, seed=1).data.split((0.6, 0.2, 0.2), 0)
    model = EASE(l2_per_like=None, beta=None).fit(train, valid)
    values = {
        (factor, beta): validation(EASE(l2_per_like=factor, beta=beta).fit(train), train, valid, "NDCG@5")
        for factor in EASE.searched["l2_per_like"]
        for beta in EASE.searched["beta"]
    }
    assert len(set(values.values())) > 2
    factor, beta = max(values, key=values.get)
    final = model.settled()
    assert (final.l2_per_like, final.beta) == (factor, beta)
    np.testing.assert_array_equal(model.score(range(9)), final.fit(train).score(range(9)))
    loaded = load(save(model, tmp_path / "model"))
    np.testing.assert_array_equal(loaded.score(range(9)), model.score(range(9)))
    assert loaded.settled().get_params() == model.settled().get_params()
    alone = EASE(l2_per_like=None, beta=None).fit(train)  # nothing to find them on
    np.testing.assert_array_equal(alone.score(range(9)), EASE().fit(train).score(range(9)))


def test_a_negative_penalty_is_refused():
    with pytest.raises(ParameterError, match=r"beta=-0\.1"):
        EASE(beta=-0.1)
