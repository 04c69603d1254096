import warnings
from functools import partial

import numpy as np
import pytest

from dpcml import CML, DPCML, GFJA, LRML, Checkpoint, create
from dpcml.utils import checks
from dpcml.utils.errors import ParameterError


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [("together", "max_user_run", 3), ("start", "init", "random"), ("optimiser", "optimizer", "adagrad")],
)
@pytest.mark.parametrize("kind", [DPCML, CML, GFJA])
def test_old_names_work_for_one_version_with_a_warning(kind, old, new, value):
    given = {old: value}
    for make in (kind, kind().set_params, partial(create, kind.name)):
        with pytest.warns(FutureWarning, match=f"{old} is deprecated, use {new}") as told:
            assert getattr(make(**given), new) == value
        assert len(told) == 1
    with pytest.raises(ParameterError, match=f"pass only {new}"):
        kind(**{old: value, new: value})


def test_metric_models_take_the_old_name_too():
    with pytest.warns(FutureWarning, match="start is deprecated, use init"):
        assert LRML(start="random").init == "random"


def test_parameters_that_a_model_never_used_are_gone():
    assert not {"n_vectors", "diversity", "diversity_weight", "diversity_per"} & CML().get_params().keys()
    assert "projection" not in GFJA().get_params()
    assert not isinstance(CML(), DPCML)
    assert not isinstance(GFJA(), DPCML)
    with pytest.warns(FutureWarning, match="n_vectors has no effect"):
        assert CML(n_vectors=1, dim=5).dim == 5
    with pytest.warns(FutureWarning, match="diversity_weight has no effect"):
        CML().set_params(diversity_weight=3.0)
    with pytest.raises(ParameterError, match="n_vectors=2: CML has one vector per user; use DPCML for more"):
        CML(n_vectors=2)
    with pytest.raises(ParameterError, match="projection='ball': GFJA compares directions"):
        GFJA(projection="ball")


def test_new_names_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        create("unis", init="random", optimizer="adagrad", max_user_run=2)


def test_old_keywords_of_fit_work_for_one_version(tmp_path):
    likes = np.kron(np.eye(2), np.ones((4, 5)))
    model = CML(dim=4, epochs=2, n_candidates=2)
    with pytest.warns(FutureWarning, match="every_epochs"):
        model.fit(likes, checkpoint=tmp_path, checkpoint_every=1)
    assert (tmp_path / "checkpoint.safetensors").exists()
    again = CML(dim=4, epochs=2, n_candidates=2).fit(likes, checkpoint=Checkpoint(tmp_path), resume=True)
    assert (again.user_vectors_ == model.user_vectors_).all()


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        (DPCML, {"dim": 10**9}), (DPCML, {"n_vectors": 10**9}), (DPCML, {"n_candidates": 10**12}),
        (DPCML, {"batch_size": 10**12}), (DPCML, {"n_threads": 10**9}), (LRML, {"n_slots": 10**9}),
    ],
)  # fmt: skip
def test_absurd_sizes_are_refused_before_anything_is_allocated(model, sizes):
    """Finding 15: they hung, or ended in a MemoryError of NumPy."""
    with pytest.raises(ParameterError, match=f"{next(iter(sizes))}=.*must be at most"):
        model(**sizes)
    with pytest.raises(ParameterError, match="must be at most"):
        model().set_params(**sizes)


@pytest.mark.parametrize("model", ["dpcml", "cml", "bpr", "lrml"])
def test_a_model_that_does_not_fit_into_memory_is_refused_with_an_estimate(model, monkeypatch):
    monkeypatch.setattr(checks, "free_bytes", lambda: 10_000)
    with pytest.raises(ParameterError, match=r"needs about .* GB of memory, 0\.0 GB are free; lower dim"):
        create(model).fit(np.eye(60))


def test_the_limit_of_a_container_counts(tmp_path, monkeypatch):
    free = checks.free_bytes()
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("1000\n")
    monkeypatch.setattr(checks, "CGROUP", tmp_path)
    assert checks.free_bytes() == 4000
    (tmp_path / "memory.max").write_text("max\n")
    assert checks.free_bytes() > 4000
    assert free > 4000
