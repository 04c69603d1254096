import sys
import threading

import numpy as np
import pytest

from dpcml import DPCML, EASE, Blend, Interactions, evaluate
from dpcml.scale import RayRunner, collective
from dpcml.scale.engine import weight_mean
from dpcml.scale.init import INITIALIZERS, init_items
from dpcml.scale.runner import _job, partition
from dpcml.scale.worker import TrainingJob, run
from dpcml.training.init import INITS
from dpcml.training.trainer import FitOptions
from dpcml.utils.cluster import START_TRIES
from dpcml.utils.errors import DataError, MissingExtraError, ParameterError
from dpcml.utils.packages import version


class ThreadGroup:
    """Workers that are threads of this process."""

    def __init__(self, rank, size, shared):
        self.rank, self.size, self._shared = rank, size, shared

    def sum(self, values):
        self._shared["values"][self.rank] = values.copy()
        self._shared["barrier"].wait()
        total = sum(self._shared["values"][1:], self._shared["values"][0].copy())
        self._shared["barrier"].wait()
        values[...] = total
        return values


def on_threads(workers, sync_every):
    """A runner whose workers are threads."""

    def train_with(model, train, valid, options):
        shared = {"values": [None] * workers, "barrier": threading.Barrier(workers)}
        cuts, found = partition(train, workers), [None] * workers

        def one(rank):
            group = collective.Alone() if workers == 1 else ThreadGroup(rank, workers, shared)
            start = None if workers == 1 else init_items(model, train)
            job = TrainingJob(
                model, start, model.train_config(train), train.per_item, weight_mean(train), train.n_positives,
                sync_every, collective.POWER, None, False, {}, version(),
            )  # fmt: skip
            some = [part and part.users_between(*cuts[rank : rank + 2]) for part in (train, valid)]
            found[rank] = run(job, group, *some)

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return np.concatenate([one.users for one in found]), found[0].items, found[0].history

    return train_with


def same(one, other):
    return all(np.array_equal(value, other.to_arrays()[name]) for name, value in one.to_arrays().items())


def test_users_start_in_parts_as_they_do_at_once(parts, model):
    """Items start with the bits of one process; users at the same places, but for their noise."""
    for name in INITIALIZERS:
        model.set_params(init=name, random_state=3)
        found = init_items(model, parts.train)
        counts = model.vector_counts(parts.train.per_user)
        users, items = INITS[name](parts.train, counts, model.trained_dim, np.random.default_rng(3))
        assert name == "random" or np.array_equal(found.vectors.astype(np.float32), items)
        mine = found.users(parts.train, counts, 1)
        assert mine.shape == users.shape
        assert name == "random" or np.abs(mine - users).max() < 0.3
    assert set(INITIALIZERS) == set(INITS)


@pytest.mark.parametrize("init", ["clusters", "spectral", "random"])
def test_one_worker_gives_the_bits_of_the_local_engine(parts, model, init):
    local = model.set_params(init=init).fit(parts.train, parts.valid)
    alone = DPCML(**model.get_params()).fit(parts.train, parts.valid, runner=on_threads(1, 3))
    assert same(local, alone)
    assert [e.validation for e in local.history_.epochs] == [e.validation for e in alone.history_.epochs]
    assert [e.loss for e in local.history_.epochs] == [e.loss for e in alone.history_.epochs]


def test_workers_agree_and_learn_as_well_as_one(parts, model):
    model.set_params(epochs=10)
    local = model.fit(parts.train, parts.valid)
    many = [DPCML(**model.get_params()).fit(parts.train, parts.valid, runner=on_threads(3, 4)) for _ in range(2)]
    assert same(*many)
    assert not same(local, many[0])
    reached = [
        evaluate(one, parts.train, parts.test, metrics=["NDCG@10"], n_threads=1).metrics["NDCG@10"]
        for one in (local, many[0])
    ]
    assert reached[1] > 0.9 * reached[0]


def test_the_interval_matters_for_the_bits(parts, model):
    often, seldom = (DPCML(**model.get_params()).fit(parts.train, runner=on_threads(2, every)) for every in (1, 10_000))
    assert not same(often, seldom)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_item_sync_adds_movements_by_a_power_of_the_movers(power):
    from dpcml.kernels.optimizer import EmbeddingTable

    class Two:
        rank, size = 0, 2

        def sum(self, values):
            if values.dtype == np.float32:
                values += np.array([[0.0, 0.2, 1], [0.0, 0.0, 0], [0.0, 0.0, 0]], dtype=np.float32)
            return values

    vectors = np.array([[0.1, 0.1], [0.5, 0.5], [0.8, 0.6]], dtype=np.float32)
    items = EmbeddingTable(vectors, np.zeros(3, np.float32), np.zeros((3, 4), np.float32))
    sync = collective.ItemSync(Two(), every=1, n_batches=7, on_sphere=False, power=power)
    sync.start(items)
    vectors += np.array([[0.1, 0.0], [0.1, 0.0], [1.0, 0.0]], dtype=np.float32)
    sync(items)
    assert sync.rounds == 7
    assert np.allclose(vectors[0], [0.1 + 0.1 / 2**power, 0.1 + 0.2 / 2**power])
    assert np.allclose(vectors[1], [0.6, 0.5])
    assert np.allclose(vectors[2], np.array([1.8, 0.6]) / np.hypot(1.8, 0.6))  # back into the ball
    assert np.allclose(items.squares, (vectors**2).sum(axis=1))


def test_on_ray_one_worker_is_local_and_two_repeat(ray_cluster, parts, model):
    local = model.fit(parts.train, parts.valid)
    alone = DPCML(**model.get_params()).fit(parts.train, parts.valid, runner=RayRunner(1))
    assert same(local, alone)
    pair = [DPCML(**model.get_params()).fit(parts.train, parts.valid, runner=RayRunner(2, sync_every=4)) for _ in "ab"]
    assert same(*pair)
    assert len(pair[0].history_.epochs) == 4


def test_a_blend_trains_its_member_on_the_runner(parts, model):
    seen = []

    def runner(one, *rest):
        seen.append(one.name)
        return on_threads(1, 1)(one, *rest)

    blend = Blend([model, EASE()]).fit(parts.train, parts.valid, runner=runner)
    assert seen == ["dpcml"]
    assert len(blend.recommend(0, n=3)[0]) == 3


def test_models_without_the_engine_say_so(likes):
    with pytest.raises(ParameterError, match="EASE is not trained by the engine"):
        EASE().fit(likes, runner=RayRunner(1))


def test_too_many_workers_for_the_data(likes):
    with pytest.raises(ParameterError, match="workers=500"):
        partition(likes, 500)


@pytest.mark.parametrize(
    ("counts", "cuts"),
    [
        ([3, 3, 3, 3, 3, 300], [0, 5, 6]),
        ([300, 3, 3, 3, 3, 3], [0, 1, 6]),
        ([3, 300, 3, 3], [0, 1, 2, 4]),
        ([300, 1, 1, 1], [0, 1, 2, 3, 4]),
        ([0, 5, 0, 0, 300, 0], [0, 4, 6]),
        ([2, 2, 2, 2, 2, 2], [0, 2, 4, 6]),
        ([4, 4, 0, 4, 4], [0, 2, 5]),  # as ever: only cuts that leave a part empty are moved
    ],
)
def test_each_worker_has_positives_where_there_are_enough_users(counts, cuts):
    data = Interactions.from_csr(np.arange(300) < np.array(counts)[:, None])
    assert partition(data, len(cuts) - 1) == cuts
    with pytest.raises(ParameterError, match="are too few for so many workers; take fewer"):
        partition(data, int((data.per_user > 0).sum()) + 1)


def test_callbacks_are_refused(likes, model):
    with pytest.raises(ParameterError, match="callbacks"):
        model.fit(likes, runner=RayRunner(1), callbacks=[print])


def test_no_cluster_at_the_address(likes, model, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(DataError, match=r"no Ray cluster at '127\.0\.0\.1:1'"):
        model.fit(likes, runner=RayRunner(2, address="127.0.0.1:1"))


def test_a_ray_that_does_not_start_is_an_error_of_ours(likes, model, monkeypatch):
    ray = pytest.importorskip("ray")

    starts = []

    def late(**_):
        starts.append(1)
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", late)
    monkeypatch.setattr(ray, "shutdown", lambda: None)  # Ray of the other tests goes on
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(DataError, match=r"Ray did not start on this machine \(The current node timed out"):
        model.fit(likes, runner=RayRunner(1))
    assert len(starts) == START_TRIES


def test_without_ray_the_error_names_the_extra(likes, model, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"\[ray\]"):
        model.fit(likes, runner=RayRunner(2))


@pytest.mark.parametrize("broken", ["raise ImportError('libray.so: cannot\\nopen')", "import no_such_part_of_ray"])
def test_a_broken_ray_is_one_line(likes, model, monkeypatch, tmp_path, broken):
    (tmp_path / "ray.py").write_text(broken)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    with pytest.raises(MissingExtraError, match=r"^ray cannot be imported \(.*(cannot open|no_such_part).*\): pip .*$"):
        model.fit(likes, runner=RayRunner(2))


def test_more_cores_than_the_cluster_has(ray_cluster, likes, model):
    with pytest.raises(ParameterError, match="need 15 cores, the cluster has 4"):
        model.set_params(n_threads=3).fit(likes, runner=RayRunner(5))


def test_workers_share_a_batch_and_exchange_after_as_many_positives_as_there_are_items():
    likes = Interactions.from_csr(np.random.default_rng(0).random((60, 512)) < 0.3)
    jobs = [_job(RayRunner(workers), DPCML(dim=8, batch_size=256), likes, None, FitOptions(), 1) for workers in (1, 4)]
    assert [job.config.batch_size for job in jobs] == [256, 64]
    assert [job.sync_every for job in jobs] == [2, 8]
