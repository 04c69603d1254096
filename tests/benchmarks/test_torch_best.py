import numpy as np
import pytest

import dpcml.benchmarks.torch_best as module
from dpcml.benchmarks.setting import Setting
from dpcml.benchmarks.torch_best import BestTraining

torch = pytest.importorskip("torch")


def all_negatives(data):
    liked = data.csr.toarray() > 0
    return np.array([np.flatnonzero(~liked[user]) for user in data.rows])


@pytest.mark.parametrize("n_vectors", [1, 2, 5])
@pytest.mark.parametrize("margin", [0.05, 1.0])
def test_a_batch_gives_the_vectors_of_the_engine(few_negatives, n_vectors, margin):
    data = few_negatives
    # A batch holds all positives, so that their order does not matter; later steps see moments and step counts.
    setting = Setting(n_vectors, 7, 60, batch_size=data.n_positives, margin=margin, diversity=(0.05, 0.2), rate=0.05)
    engine, ours = setting.engine(data, 1), BestTraining(data, setting)
    batch = (torch.from_numpy(a.astype(np.int64)) for a in (data.rows, data.indices, all_negatives(data)))
    users, positives, candidates = batch
    start = engine.user_vectors.copy()
    for number in range(4):
        loss = engine.epoch(number, setting.rate)
        assert float(ours.step(users, positives, candidates)) / data.n_positives == pytest.approx(loss, rel=1e-4)
        expected = ours.users.vectors.numpy().reshape(start.shape)
        np.testing.assert_allclose(engine.user_vectors, expected, atol=2e-5)
        np.testing.assert_allclose(engine.item_vectors, ours.items.vectors.numpy(), atol=2e-5)
    assert np.abs(engine.user_vectors - start).max() > 0.1


@pytest.mark.parametrize("bitmap_bytes", [0, 2**28])
def test_candidates_are_never_liked_and_all_others_come_up(small, monkeypatch, bitmap_bytes):
    monkeypatch.setattr(module, "BITMAP_BYTES", bitmap_bytes)
    training = BestTraining(small, Setting(dim=4, n_candidates=50))
    liked = small.csr.toarray() > 0
    users = torch.arange(small.n_users).repeat_interleave(20)
    drawn = training.draw(users).numpy()
    assert not liked[users.numpy()[:, None], drawn].any()
    came_up = np.zeros_like(liked)
    came_up[users.numpy()[:, None], drawn] = True
    assert (came_up == ~liked).all()


def test_users_end_on_the_sphere_and_items_in_the_ball(small):
    training = BestTraining(small, Setting(dim=6, batch_size=50, rate=0.05))
    losses = [training.epoch() for _ in range(10)]
    assert losses[-1] < losses[0]
    np.testing.assert_allclose(np.linalg.norm(training.users.vectors.numpy(), axis=1), 1, atol=1e-5)
    assert np.linalg.norm(training.items.vectors.numpy(), axis=1).max() <= 1 + 1e-5
