import numpy as np
import pytest

from dpcml.benchmarks.setting import Setting
from dpcml.benchmarks.torch_released import ReleasedTraining

torch = pytest.importorskip("torch")


def test_all_users_are_on_the_sphere_after_a_single_batch(small):
    training = ReleasedTraining(small, Setting(n_vectors=3, dim=6, batch_size=4))
    training.run(n_batches=1)
    np.testing.assert_allclose(training.users.detach().norm(dim=-1), 1, atol=1e-5)
    assert float(training.items.detach().norm(dim=-1).max()) <= 1 + 1e-5


@pytest.mark.parametrize("ordered", [True, False])
def test_the_diversity_hinge_is_per_pair_and_over_all_users(small, ordered):
    setting = Setting(n_vectors=3, dim=6, diversity=(0.2, 0.3))
    training = ReleasedTraining(small, setting, ordered_pairs=ordered)
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
    training = ReleasedTraining(small, Setting(dim=4, n_candidates=30))
    users = np.arange(small.n_users)
    liked = small.csr.toarray() > 0
    assert not liked[users[:, None], training._draw(users)].any()


def test_it_learns(small):
    training = ReleasedTraining(small, Setting(n_vectors=2, dim=8, batch_size=64))
    losses = [training.run() for _ in range(10)]
    assert losses[-1] < losses[0]
