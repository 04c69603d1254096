import numpy as np
import pytest

import benchmarks.torch_training as module
from benchmarks.torch_training import BestTraining, ReleasedTraining
from benchmarks.workloads import StepConfig

torch = pytest.importorskip("torch")


def all_negatives(data):
    liked = data.csr.toarray() > 0
    return np.array([np.flatnonzero(~liked[user]) for user in data.rows])


@pytest.mark.parametrize("n_vectors", [1, 2, 5])
@pytest.mark.parametrize("margin", [0.05, 1.0])
def test_a_batch_gives_the_vectors_of_the_engine(few_negatives, n_vectors, margin):
    data = few_negatives
    # A batch holds all positives, so that their order does not matter; later steps see moments and step counts.
    step = StepConfig(
        n_vectors, 7, 60, batch_size=data.n_positives, margin=margin, diversity=(0.05, 0.2), learning_rate=0.05
    )
    engine, ours = step.engine(data, 1), BestTraining(data, step)
    batch = (torch.from_numpy(a.astype(np.int64)) for a in (data.rows, data.indices, all_negatives(data)))
    users, positives, candidates = batch
    start = engine.user_vectors()[:, :, :7].copy()
    for number in range(4):
        loss = engine.epoch(number, step.learning_rate)
        assert float(ours.step(users, positives, candidates)) / data.n_positives == pytest.approx(loss, rel=1e-4)
        expected = ours.users.vectors.numpy().reshape(start.shape)
        np.testing.assert_allclose(engine.user_vectors()[:, :, :7], expected, atol=2e-5)
        np.testing.assert_allclose(engine.item_vectors()[:, :7], ours.items.vectors.numpy(), atol=2e-5)
    assert np.abs(engine.user_vectors()[:, :, :7] - start).max() > 0.1


@pytest.mark.parametrize("bitmap_bytes", [0, 2**28])
def test_candidates_are_all_items_that_are_no_positives(small, monkeypatch, bitmap_bytes):
    monkeypatch.setattr(module, "BITMAP_BYTES", bitmap_bytes)
    training = BestTraining(small, StepConfig(dim=4, n_candidates=50))
    liked = small.csr.toarray() > 0
    users = torch.arange(small.n_users).repeat_interleave(20)
    drawn = training.draw(users).numpy()
    assert not liked[users.numpy()[:, None], drawn].any()
    drawn_once = np.zeros_like(liked)
    drawn_once[users.numpy()[:, None], drawn] = True
    assert (drawn_once == ~liked).all()


def test_users_end_on_the_sphere_and_items_in_the_ball(small):
    training = BestTraining(small, StepConfig(dim=6, batch_size=50, learning_rate=0.05))
    losses = [training.epoch() for _ in range(10)]
    assert losses[-1] < losses[0]
    np.testing.assert_allclose(np.linalg.norm(training.users.vectors.numpy(), axis=1), 1, atol=1e-5)
    assert np.linalg.norm(training.items.vectors.numpy(), axis=1).max() <= 1 + 1e-5


def test_all_users_are_on_the_sphere_after_a_single_batch(small):
    training = ReleasedTraining(small, StepConfig(n_vectors=3, dim=6, batch_size=4))
    training.run(n_batches=1)
    np.testing.assert_allclose(training.users.detach().norm(dim=-1), 1, atol=1e-5)
    assert float(training.items.detach().norm(dim=-1).max()) <= 1 + 1e-5


@pytest.mark.parametrize("ordered", [True, False])
def test_the_diversity_hinge_is_per_pair_and_over_all_users(small, ordered):
    step = StepConfig(n_vectors=3, dim=6, diversity=(0.2, 0.3))
    training = ReleasedTraining(small, step, ordered_pairs=ordered)
    with torch.no_grad():
        training.users.normal_(std=0.4, generator=torch.Generator().manual_seed(1))
    users = training.users.detach().numpy().astype(np.float64)
    expected = []
    for mine in users:
        for a in range(3):
            for b in range(3):
                if a != b:
                    half = ((mine[a] - mine[b]) ** 2).sum() / 2
                    expected.append(max(0, 0.2 - half) + max(0, half - 0.3))
    assert float(training._diversity_hinge().detach()) == pytest.approx(np.mean(expected), rel=1e-5)


def test_drawn_items_are_never_liked(small):
    training = ReleasedTraining(small, StepConfig(dim=4, n_candidates=30))
    users = np.arange(small.n_users)
    liked = small.csr.toarray() > 0
    assert not liked[users[:, None], training._draw(users)].any()


def test_the_released_loss_falls(small):
    training = ReleasedTraining(small, StepConfig(n_vectors=2, dim=8, batch_size=64))
    losses = [training.run() for _ in range(10)]
    assert losses[-1] < losses[0]
