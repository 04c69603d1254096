"""How neural models are trained: seeds, resumed runs, early stopping, threads, projections."""

import numpy as np
import pytest

from dpcml import Checkpoint
from dpcml.evaluation.evaluate import validation
from dpcml.models.neural.backend import load_torch, torch_threads
from dpcml.models.neural.multi_vector import M2F
from dpcml.models.neural.ncf import GMF, MLP
from dpcml.utils.errors import ParameterError


def same(one, other):
    for table, values in one.to_arrays().items():
        assert (values == getattr(other, table)).all(), table
    plain = [[(e.number, e.loss, e.rate, e.validation) for e in model.history_.epochs] for model in (one, other)]
    assert plain[0] == plain[1]


def test_resumed_run_is_bit_identical(name, parts, tmp_path, small):
    whole = small(name).fit(parts.train, parts.valid)
    options = {"checkpoint": Checkpoint(tmp_path, every_epochs=1)}
    small(name).fit(parts.train, parts.valid, callbacks=[lambda history: len(history.epochs) == 3], **options)
    resumed = small(name).fit(parts.train, parts.valid, resume=True, **options)
    same(whole, resumed)
    with pytest.raises(ParameterError, match="of a run with dim=5, this one has 6"):
        small(name, dim=6).fit(parts.train, parts.valid, resume=True, **options)


def test_training_lowers_the_loss_and_moves_every_table(name, likes, small):
    model = small(name, epochs=8, learning_rate=0.01)
    start = model._initial(likes, np.random.default_rng(0))
    model.fit(likes)
    losses = [epoch.loss for epoch in model.history_.epochs]
    assert losses[-1] < losses[0]
    for table, values in model.to_arrays().items():
        assert not np.array_equal(values, start[table]), f"{table} was not trained"


def test_seed_decides(name, parts, small):
    one, other = (small(name, random_state=seed).fit(parts.train) for seed in (0, 1))
    assert not np.allclose(one.score([0]), other.score([0]))


def test_best_validated_state_is_kept(name, parts, small):
    model = small(name, epochs=12, validate_every=1, learning_rate=0.05, schedule="constant").fit(*parts[:2])
    judged = [epoch.validation for epoch in model.history_.epochs]
    assert validation(model, parts.train, parts.valid) == pytest.approx(max(judged))


def test_state_is_the_memory_of_the_tensors(likes, small):
    """The loop restores by writing into the arrays."""
    learner = small("gmf")._learner(likes)
    learner.state()["user_vectors_"][...] = 7
    assert float(learner.tensors["user_vectors_"].detach().min()) == 7


def test_vectors_of_metric_models_stay_in_the_ball(likes, small):
    model = small("lrml", learning_rate=0.5).fit(likes)
    for vectors in (model.user_vectors_, model.item_vectors_):
        assert np.linalg.norm(vectors, axis=1).max() <= 1 + 1e-5


def test_regularisation_shrinks_vectors(likes, small):
    free, held = (small("gmf", regularisation=weight, epochs=20).fit(likes) for weight in (0.0, 10.0))
    assert (held.item_vectors_**2).sum() < 0.8 * (free.item_vectors_**2).sum()


def test_dcrs_brings_diversity_between_its_bounds(likes):
    settings = {"dim": 5, "n_vectors": 3, "epochs": 100, "learning_rate": 0.02, "diversity": (2.0, 2.5)}
    free, held = (M2F(**settings, diversity_weight=weight).fit(likes) for weight in (0.0, 10.0))

    def delta(model):
        spread = model.user_vectors_ - model.user_vectors_.mean(axis=1, keepdims=True)
        return (spread**2).sum(axis=(1, 2)) / 2

    assert (delta(free) < 1.5).mean() > 0.5
    assert ((delta(held) > 1.8) & (delta(held) < 2.7)).mean() > 0.9


def test_pretrained_neumf_starts_from_its_parts(likes, small):
    model = small("neumf", pretrain_epochs=3, alpha=0.25)
    start = model._initial(likes, np.random.default_rng(0))
    shared = {key: value for key, value in model.get_params().items() if key in GMF().get_params()} | {"epochs": 3}
    gmf, mlp = GMF(**shared).fit(likes), MLP(**shared, layers=model.layers).fit(likes)
    assert start.keys() == model._tables(likes.n_users, likes.n_items).keys()
    assert (start["gmf_user_vectors_"] == gmf.user_vectors_).all()
    assert (start["mlp_layer_2_weights_"] == mlp.layer_2_weights_).all()
    learner = model._learner(likes)
    for table, values in start.items():
        assert (learner.state()[table] == values).all()
    found = model._blocks(learner.tensors, np.arange(likes.n_users), likes.n_items, "cpu")
    mixed = 0.25 * gmf.score(np.arange(likes.n_users)) + 0.75 * mlp.score(np.arange(likes.n_users))
    np.testing.assert_allclose(found, mixed, rtol=1e-4, atol=1e-5)


def test_threads_are_set_for_the_duration(likes, small):
    torch = load_torch()
    seen = []
    with torch_threads(2):
        small("gmf").fit(likes, callbacks=[lambda history: seen.append(torch.get_num_threads())])
        assert torch.get_num_threads() == 2
    assert set(seen) == {1}


def test_global_random_state_is_left_alone(likes, small):
    torch = load_torch()
    before = torch.random.get_rng_state().clone()
    small("mlp").fit(likes).score([0])
    assert (torch.random.get_rng_state() == before).all()


def test_lrml_can_give_a_negative_the_relation_of_its_positive(likes, small):
    """With one item in a batch, or a memory of one slot, there is one relation, and both losses are the same."""
    torch = load_torch()
    own, shared = (small("lrml", shared_relation=shared).fit(likes) for shared in (False, True))
    assert not np.array_equal(own.item_vectors_, shared.item_vectors_)
    tables = {name: torch.from_numpy(values) for name, values in shared.to_arrays().items()}
    users, items = torch.tensor([0, 1]), torch.tensor([[0, 1, 2], [3, 4, 5]])
    assert own.loss(tables, users, items) != shared.loss(tables, users, items)
    one = {**tables, "keys_": tables["keys_"][:1], "memory_": tables["memory_"][:1]}
    assert float(own.loss(one, users, items)) == pytest.approx(float(shared.loss(one, users, items)))
