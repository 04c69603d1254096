import numpy as np
import pytest

from dpcml.training.engine import Engine, TrainConfig
from dpcml.training.init import random_init
from dpcml.training.samplers import SAMPLERS


def engine(data, *, n_vectors=3, dim=8, negatives="hard", **changes):
    users, items = random_init(data, n_vectors, dim, np.random.default_rng(0))
    settings = {
        "sampler": SAMPLERS[negatives],
        "n_candidates": 4,
        "margin": 1.0,
        "diversity": (0.05, 0.25),
        "diversity_weight": 10.0,
        "diversity_per_pair": False,
        "users_on_sphere": True,
        "items_on_sphere": False,
        "optimizer": "adam",
        "batch_size": 64,
        "max_user_run": 2,
        "seed": 0,
        "n_threads": 1,
    }
    return Engine(data, users, items, TrainConfig(**{**settings, **changes}))


def trained(data, epochs=3, **settings):
    one = engine(data, **settings)
    losses = [one.epoch(number, 0.01) for number in range(epochs)]
    return one, losses


def same(one, other):
    return all((values == other.state()[name]).all() for name, values in one.state().items())


RULES = [
    {"negatives": "uniform"},
    {"negatives": "hard"},
    {"negatives": "two-stage"},
    {"optimizer": "adagrad", "diversity_per_pair": True},
    {"n_vectors": 1},
]


@pytest.mark.parametrize("settings", RULES)
def test_same_bits_on_any_number_of_threads(likes, settings):
    alone, losses = trained(likes, **settings)
    for threads in (2, 3, 5):
        team, team_losses = trained(likes, n_threads=threads, **settings)
        assert same(alone, team)
        assert losses == team_losses


@pytest.mark.parametrize("thread", [0, 1])
def test_nobody_waits_for_a_thread_that_failed(likes, thread):
    one = engine(likes, n_threads=2)
    kernel = one._kernel

    def failing(*args):
        if args[-2] == thread:
            raise MemoryError("no room")
        kernel(*args)

    one._kernel = failing
    with pytest.raises(MemoryError, match="no room"):
        one.epoch(0, 0.01)


def test_same_seed_same_bits_other_seed_other_bits(likes):
    one, losses = trained(likes)
    again, _ = trained(likes)
    other, other_losses = trained(likes, seed=1)
    assert same(one, again)
    assert not same(one, other)
    assert losses != other_losses


def test_epochs_can_be_resumed_from_the_state(likes):
    whole, _ = trained(likes, epochs=4)
    first, _ = trained(likes, epochs=2)
    second = engine(likes, n_threads=2)
    for name, values in second.state().items():
        values[...] = first.state()[name]
    for number in (2, 3):
        second.epoch(number, 0.01)
    assert same(whole, second)


def test_epochs_differ(likes):
    """Order and candidates change from epoch to epoch: without steps, the loss still does."""
    one = engine(likes)
    assert len({one.epoch(number, 0.0) for number in range(5)}) == 5


@pytest.mark.parametrize("negatives", list(SAMPLERS))
def test_loss_falls(likes, negatives):
    _, losses = trained(likes, epochs=15, negatives=negatives)
    assert losses[-1] < 0.75 * losses[0]


@pytest.mark.parametrize(("n_vectors", "dim"), [(1, 1), (3, 1), (3, 7), (11, 9)])
def test_odd_sizes_learn_and_keep_their_padding_zero(likes, n_vectors, dim):
    one, losses = trained(likes, epochs=8, n_vectors=n_vectors, dim=dim, n_threads=2)
    assert losses[-1] < losses[0]
    assert one.user_vectors.shape == (likes.n_users, n_vectors, dim)
    assert one.item_vectors.shape == (likes.n_items, dim)
    for table in (one.users, one.items):
        assert table.vectors.shape[1] % 8 == 0
        assert not table.vectors[:, dim:].any()
        assert not table.moments.reshape(len(table.vectors), 2, -1)[:, :, dim:].any()
        np.testing.assert_allclose(table.squares, (table.vectors**2).sum(axis=1), atol=1e-5)
        assert np.linalg.norm(table.vectors, axis=1).max() < 1 + 1e-5


@pytest.mark.parametrize("batch_size", [1, 10**5])
def test_any_batch_size(likes, batch_size):
    alone, losses = trained(likes, epochs=2, batch_size=batch_size)
    team, _ = trained(likes, epochs=2, batch_size=batch_size, n_threads=3)
    assert same(alone, team)
    assert np.isfinite(losses).all()


def test_report_tells_the_share_that_is_done(likes, monkeypatch):
    monkeypatch.setattr("dpcml.training.engine.CHUNK", 128)
    shares = []
    chunked = engine(likes, n_threads=2)
    loss = chunked.epoch(0, 0.01, shares.append)
    assert len(shares) > 3
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert engine(likes).epoch(0, 0.01) == loss, "chunks do not change the result"


def test_compiling_changes_nothing(likes):
    one = engine(likes)
    before = {name: values.copy() for name, values in one.state().items()}
    one.compile()
    assert all((values == before[name]).all() for name, values in one.state().items())


def test_released_vectors_are_copies_without_padding(likes):
    one, _ = trained(likes, epochs=1, dim=7)
    users, items = one.user_vectors.copy(), one.item_vectors.copy()
    released = one.release()
    assert (released[0] == users).all()
    assert (released[1] == items).all()
    assert released[0].flags.c_contiguous
    assert released[0].shape == (likes.n_users, 3, 7)
