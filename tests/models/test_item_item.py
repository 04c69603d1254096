import numpy as np
import pytest

from dpcml import ItemKNN, RP3Beta, load, planted, save
from dpcml.evaluation.evaluate import validation
from dpcml.utils.errors import ParameterError
from dpcml.utils.threads import thread_count


def test_scores_sum_the_similarities_of_kept_neighbours():
    rng = np.random.default_rng(0)
    likes = (rng.random((60, 15)) < 0.3).astype(float)
    together = likes.T @ likes
    counts = np.diag(together)
    similarity = together / (np.sqrt(np.outer(counts, counts)) + 3)
    np.fill_diagonal(similarity, 0)
    for row in similarity:  # each item keeps its own 4 nearest
        row[np.argsort(-row, kind="stable")[4:]] = 0
    model = ItemKNN(k=4, shrink=3).fit(likes)
    np.testing.assert_allclose(model.similarity_.toarray(), similarity, rtol=1e-6)
    np.testing.assert_allclose(model.score(np.arange(60)), likes @ similarity.T, rtol=1e-5)


@pytest.mark.parametrize(("name", "value"), [("k", 0), ("k", 2.5), ("shrink", -1), ("shrink", np.inf)])
def test_bad_parameters_of_itemknn(name, value):
    with pytest.raises(ParameterError, match=f"{name}="):
        ItemKNN(**{name: value})


def by_hand(likes, alpha, beta):
    """The weight of walking from item i to item j, dense."""
    n_users, n_items = np.maximum(likes.sum(axis=1), 1), np.maximum(likes.sum(axis=0), 1)
    to_user, to_item = (likes / n_items).T ** alpha, (likes / n_users[:, None]) ** alpha
    walks = to_user @ to_item / n_items**beta
    np.fill_diagonal(walks, 0)
    return walks


@pytest.fixture
def likes():
    likes = (np.random.default_rng(0).random((60, 15)) < 0.3).astype(float)
    likes[7] = 0  # a user and an item without positives
    likes[:, 4] = 0
    return likes


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (0.6, 0.4), (1.7, 1.2)])
def test_scores_are_those_of_three_step_walks(likes, alpha, beta):
    model = RP3Beta(k=15, alpha=alpha, beta=beta).fit(likes)
    np.testing.assert_allclose(model.score(np.arange(60)), likes @ by_hand(likes, alpha, beta), rtol=1e-5)


def test_each_item_keeps_the_items_from_which_most_walks_arrive(likes):
    walks = by_hand(likes, 0.8, 0.4)
    for column in walks.T:
        column[np.argsort(-column, kind="stable")[4:]] = 0
    model = RP3Beta(k=4, alpha=0.8, beta=0.4).fit(likes)
    np.testing.assert_allclose(model.similarity_.toarray(), walks.T, rtol=1e-5)
    np.testing.assert_allclose(model.score(np.arange(60)), likes @ walks, rtol=1e-5)


def test_threads_do_not_matter(likes, monkeypatch):
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("DPCML_THREADS", threads)
        assert thread_count() == int(threads)
        found.append(RP3Beta(k=5).fit(likes).similarity_.toarray())
    assert (found[0] == found[1]).all()


def test_powers_are_found_on_the_validation_part_and_kept(tmp_path):
    train, valid, _ = planted(150, 120, seed=1).data.split((0.6, 0.2, 0.2), 0)
    model = RP3Beta(alpha=None, beta=None).fit(train, valid)
    values = {
        (alpha, beta): validation(RP3Beta(alpha=alpha, beta=beta).fit(train), train, valid, "NDCG@5")
        for alpha in RP3Beta.searched["alpha"]
        for beta in RP3Beta.searched["beta"]
    }
    assert len(set(values.values())) > 2
    final = model.settled()
    assert (final.alpha, final.beta) == max(values, key=values.get)
    np.testing.assert_array_equal(model.score(range(9)), final.fit(train).score(range(9)))
    loaded = load(save(model, tmp_path / "model"))
    np.testing.assert_array_equal(loaded.score(range(9)), model.score(range(9)))
    assert loaded.settled().get_params() == model.settled().get_params()
    fixed = RP3Beta(alpha=0.8, beta=None).fit(train, valid).settled()
    assert fixed.alpha == 0.8
    assert fixed.beta in RP3Beta.searched["beta"]
    alone = RP3Beta(alpha=None, beta=None).fit(train)  # nothing to find them on
    np.testing.assert_array_equal(alone.score(range(9)), RP3Beta(alpha=0.6, beta=0.2).fit(train).score(range(9)))


def test_a_larger_beta_holds_popular_items_back(likes):
    likes[:, 0] = 1
    ranks = [(RP3Beta(beta=beta).fit(likes).score(np.arange(60)).argmax(axis=1) == 0).mean() for beta in (0, 0.5, 1.5)]
    assert ranks[0] > ranks[1] >= ranks[2]


def test_powers_that_leave_nothing_over_are_harmless(likes):
    scores = RP3Beta(alpha=1000.0, beta=1000.0).fit(likes).score(np.arange(60))
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(("name", "value"), [("k", 0), ("k", 2.5), ("alpha", -1), ("beta", np.nan), ("alpha", "much")])
def test_bad_parameters_of_rp3beta(name, value):
    with pytest.raises(ParameterError, match=f"{name}="):
        RP3Beta(**{name: value})
