from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dpcml.kernels.partition import groups_of
from dpcml.kernels.random import epoch_key


def mined(engine, number=4):
    """Mine the whole world in one batch; return the order of positives, the key, and what was found for each."""
    engine.epoch(number, 0.0)
    key = epoch_key(engine.config.seed, number)
    order, work = engine._order.draw(key), engine._work
    place = np.argsort(np.argsort(groups_of(order[:, 0]), kind="stable"))  # positives are mined group by group
    item, vector, weight = (
        rows.reshape(len(work.pairs), -1)[place] for rows in (work.term_item, work.term_vector, work.term_weight)
    )
    found = SimpleNamespace(
        pairs=work.pairs[place], chosen=work.chosen[place], hinge=work.hinge[place],
        item=item, vector=vector, weight=weight,
    )  # fmt: skip
    return order, key, found


@pytest.mark.parametrize("negatives", ["uniform", "popularity", "hard", "two-stage", "partial-auc"])
@pytest.mark.parametrize(("threads", "pull", "adaptive"), [(1, 0.0, False), (3, 0.3, True)])
def test_batch_is_that_of_the_twin(build, twin, world, negatives, threads, pull, adaptive):
    dim = 8 if negatives == "two-stage" else 7
    engine = build(negatives, n_threads=threads, dim=dim, pull=pull, adaptive=adaptive)
    U, V = twin.vectors(engine)
    share, attraction = 0.5 if negatives == "partial-auc" else 1, twin.attraction(world, pull)
    order, key, found = mined(engine)
    batch = twin.mine(engine, U, V, key, order)
    for b, (user, item, negative) in enumerate(batch):
        assert found.pairs[b].tolist() == [user, item]
        assert found.item[b].tolist() == [*negative, item]
        distance = ((U[user][:, None] - V[[item, *negative]]) ** 2).sum(axis=2)
        assert found.vector[b].tolist() == np.roll(distance.argmin(axis=0), -1).tolist()
        margin = engine.config.margin + distance[:, 0].min() - distance[:, 1:].min(axis=0)
        expected = [*np.where(margin > 0, -2 * share, 0), 2 * share * (margin > 0).sum() + 2 * attraction[item]]
        np.testing.assert_allclose(found.weight[b], expected, rtol=1e-6)
    hinges, _ = twin.objective(U, V, batch, engine.config)
    np.testing.assert_allclose(found.hinge, hinges, atol=2e-6)
    assert 0 < (found.weight[:, :-1] != 0).mean() < 1, "the world must have both kinds"


def test_one_vector_per_user(build, twin):
    engine = build("hard", n_vectors=1)
    U, V = twin.vectors(engine)
    order, key, found = mined(engine)
    batch = twin.mine(engine, U, V, key, order)
    assert found.item[:, 0].tolist() == [negatives[0] for _, _, negatives in batch]
    assert not found.vector.any()
    np.testing.assert_allclose(found.hinge, twin.objective(U, V, batch, engine.config)[0], atol=2e-6)


def test_loss_is_the_mean_hinge(build):
    engine = build("uniform")
    assert engine.epoch(4, 0.0) == pytest.approx(engine._work.hinge[: len(engine._data.items)].astype(float).mean())


def test_not_a_number_shows_in_the_loss(build):
    engine = build("hard")
    engine.items.vectors[5, 2] = np.nan
    assert not np.isfinite(engine.epoch(0, 0.0))


def test_two_stage_prefers_similar_items_by_the_formula(build, twin):
    """Over many epochs, the chosen candidates, told by their chances, are as frequent as their chances say."""
    engine = build("two-stage", dim=8, n_candidates=5)
    _, V = twin.vectors(engine)
    expected, observed = np.zeros(5), np.zeros(5)
    for number in range(12):
        _, _, found = mined(engine, number)
        for b in range(len(engine._data.items)):
            candidates = found.chosen[b, 1:6]
            chances = twin.similar(V, found.pairs[b, 1], candidates)
            best_first = np.argsort(-chances)
            picked = np.flatnonzero(candidates[best_first] == found.item[b, 0])
            expected += chances[best_first]
            observed[picked] += (
                chances[best_first][picked] / chances[best_first][picked].sum()
            )  # level: the same item twice
    some = expected > 5
    assert some.sum() >= 3
    assert stats.chisquare(observed[some], expected[some] * observed[some].sum() / expected[some].sum()).pvalue > 1e-3
    assert abs(observed[~some].sum() - expected[~some].sum()) < 10


def test_two_stage_takes_any_where_none_is_similar(build):
    """All candidates point away from the positive: each has the same chance."""
    engine = build("two-stage", dim=8)
    rows = engine.items.vectors
    rows[:] = 0
    rows[:, 0] = np.where(np.arange(len(rows)) == 4, 1, -1)  # user 1 has seen item 4 only
    engine.items.squares[:] = 1
    places = np.zeros(4)
    for number in range(300):
        order, _, found = mined(engine, number)
        b = int(np.flatnonzero(order[:, 0] == 1)[0])
        same = found.chosen[b, 1:5] == found.item[b, 0]
        places += same / same.sum()
    assert stats.chisquare(places).pvalue > 1e-3
