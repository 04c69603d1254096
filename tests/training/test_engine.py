import numpy as np
import pytest

from dpcml.training.engine import Engine, TrainConfig
from dpcml.training.init import random_init
from dpcml.training.samplers import SAMPLERS


def engine(data, *, n_vectors=3, dim=8, negatives="hard", used=None, **changes):
    """Return an engine with random vectors; ``used`` is the number of vectors of each user that are used."""
    users, items = random_init(data, n_vectors, dim, np.random.default_rng(0))
    if used is not None:
        users = np.where((np.arange(n_vectors) >= used[:, None])[:, :, None], users[:, :1], users)
    settings = {
        "sampler": SAMPLERS[negatives],
        "n_candidates": 4,
        "n_negatives": SAMPLERS[negatives].n_negatives(changes.get("n_candidates", 4)),
        "margin": 1.0,
        "pull": 0.0,
        "diversity": (0.05, 0.25),
        "diversity_weight": 10.0,
        "diversity_per_pair": False,
        "users_on_sphere": True,
        "items_on_sphere": False,
        "optimizer": "adam",
        "batch_size": 64,
        "max_user_run": 2,
        "seed": 0,
        "average": 0.0,
        "n_threads": 1,
    }
    return Engine(data, users, items, TrainConfig(**{**settings, **changes}))


def trained(data, epochs=3, **settings):
    one = engine(data, **settings)
    losses = [one.epoch(number, 0.01) for number in range(epochs)]
    return one, losses


def same(one, other):
    return all((values == other.state()[name]).all() for name, values in one.state().items())


USED = 1 + np.arange(50) % 3

RULES = [
    {"negatives": "uniform"},
    {"negatives": "hard"},
    {"negatives": "two-stage"},
    {"optimizer": "adagrad", "diversity_per_pair": True},
    {"n_vectors": 1},
    {"negatives": "partial-auc", "n_candidates": 25},
    {"pull": 0.5},
    {"average": 0.8},
    {"used": USED},
    {"negatives": "partial-auc", "pull": 0.5, "average": 0.8, "used": USED, "diversity_per_pair": True},
]


@pytest.mark.parametrize("settings", RULES)
def test_same_bits_on_any_number_of_threads(likes, settings):
    alone, losses = trained(likes, **settings)
    for threads in (2, 3, 5):
        several, several_losses = trained(likes, n_threads=threads, **settings)
        assert same(alone, several)
        assert losses == several_losses
        assert (alone.user_vectors() == several.user_vectors()).all()
        assert (alone.item_vectors() == several.item_vectors()).all()


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


@pytest.mark.parametrize("settings", [{}, {"average": 0.8, "pull": 0.5, "used": USED}])
def test_epochs_can_be_resumed_from_the_state(likes, settings):
    whole, _ = trained(likes, epochs=4, **settings)
    first, _ = trained(likes, epochs=2, **settings)
    second = engine(likes, n_threads=2, **settings)
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
    assert one.user_vectors().shape == (likes.n_users, n_vectors, one.users.vectors.shape[1])
    assert one.item_vectors().shape == one.items.vectors.shape
    for table in (one.users, one.items):
        assert table.vectors.shape[1] % 8 == 0
        assert not table.vectors[:, dim:].any()
        assert not table.moments.reshape(len(table.vectors), 2, -1)[:, :, dim:].any()
        np.testing.assert_allclose(table.squares, (table.vectors**2).sum(axis=1), atol=1e-5)
        assert np.linalg.norm(table.vectors, axis=1).max() < 1 + 1e-5


@pytest.mark.parametrize("batch_size", [1, 10**5])
def test_any_batch_size(likes, batch_size):
    alone, losses = trained(likes, epochs=2, batch_size=batch_size)
    several, _ = trained(likes, epochs=2, batch_size=batch_size, n_threads=3)
    assert same(alone, several)
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
    users, items = one.user_vectors()[:, :, :7].copy(), one.item_vectors()[:, :7].copy()
    released = one.release()
    assert (released[0] == users).all()
    assert (released[1] == items).all()
    assert released[0].flags.c_contiguous
    assert released[0].shape == (likes.n_users, 3, 7)


def test_average_is_the_mean_of_the_epochs_with_falling_weights(likes):
    one, rows = engine(likes, average=0.8), []
    for number in range(4):
        one.epoch(number, 0.01)
        rows.append((one.users.vectors.copy(), one.items.vectors.copy()))
    weights = 0.8 ** np.arange(3, -1, -1)
    users, items = (np.einsum("e,erd->rd", weights / weights.sum(), np.stack(of)) for of in zip(*rows, strict=True))
    np.testing.assert_allclose(one.state()["user_average"], users, atol=1e-6)
    np.testing.assert_allclose(one.item_vectors(), items, atol=1e-6)
    expected = (users / np.linalg.norm(users, axis=1, keepdims=True)).reshape(one.user_vectors().shape)
    np.testing.assert_allclose(one.user_vectors(), expected, atol=1e-5)
    assert (one.user_vectors([4, 2]) == one.user_vectors()[[4, 2]]).all()
    assert one.learned() == ["user_average", "item_average"]


def test_averaging_does_not_change_training(likes):
    plain, averaged = engine(likes), engine(likes, average=0.8)
    assert [plain.epoch(n, 0.01) for n in range(3)] == [averaged.epoch(n, 0.01) for n in range(3)]
    assert (plain.users.vectors == averaged.users.vectors).all()
    assert plain.learned() == ["user_vectors", "item_vectors"]
    assert (plain.users.vectors.reshape(50, 3, -1) == plain.user_vectors()).all()


@pytest.mark.parametrize("average", [0.0, 0.8])
@pytest.mark.parametrize("per_pair", [False, True])
def test_unused_vectors_change_nothing(likes, average, per_pair):
    """Two used vectors of five are trained as two of two; a user with one as in a model with one vector."""
    settings = {"average": average, "diversity_per_pair": per_pair, "negatives": "uniform"}
    five, losses = trained(likes, n_vectors=5, used=np.full(50, 2), **settings)
    users, items = random_init(likes, 5, 8, np.random.default_rng(0))
    two = engine(likes, n_vectors=2, **settings)
    two = Engine(likes, np.ascontiguousarray(users[:, :2]), items, two.config)
    np.testing.assert_allclose([two.epoch(number, 0.01) for number in range(3)], losses, rtol=1e-4)
    np.testing.assert_allclose(five.user_vectors()[:, :2], two.user_vectors(), atol=1e-3)
    assert (five.user_vectors()[:, 2:] == five.user_vectors()[:, :1]).all()
    unused = five._unused.ravel()
    assert unused.sum() == 150
    assert not five.users.vectors[unused].any()
    assert not five.users.moments[unused].any()
    assert np.isinf(five.users.squares[unused]).all()


def test_a_vector_that_equals_the_first_before_one_that_does_not_is_used(likes):
    users, items = random_init(likes, 3, 8, np.random.default_rng(0))
    users[:, 1] = users[:, 0]
    one = Engine(likes, users, items, engine(likes).config)
    for number in range(3):
        assert np.isfinite(one.epoch(number, 0.01))
    assert np.isfinite(one.users.squares).all()
    assert (one.user_vectors()[:, 0] != one.user_vectors()[:, 2]).any(axis=1).all()


def test_pull_brings_positives_nearer(likes):
    def near(pull):
        one, _ = trained(likes, epochs=10, pull=pull)
        apart = ((one.user_vectors()[likes.rows] - one.item_vectors()[likes.indices][:, None]) ** 2).sum(axis=2)
        return apart.min(axis=1).mean()

    assert near(2.0) < 0.9 * near(0.0)
