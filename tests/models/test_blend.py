"""`Blend`: what is its own; what every model must keep is in the contracts."""

import json
import re

import numpy as np
import pytest

from dpcml import (
    DPCML,
    EASE,
    IALS,
    Blend,
    Checkpoint,
    Interactions,
    ItemKNN,
    Popularity,
    RP3Beta,
    create,
    evaluate,
    load,
)  # fmt: skip
from dpcml.data.items import Attributes, ItemTable
from dpcml.data.synthetic import planted
from dpcml.evaluation.evaluate import validation
from dpcml.export import export
from dpcml.retrieval.aspects import minority_scores
from dpcml.utils.errors import ParameterError
from dpcml.workflow import DataSource, checkpoint_folder, evaluate_saved, train_and_save

SMALL = {"n_vectors": 2, "dim": 4, "epochs": 5, "n_candidates": 3}


@pytest.fixture(scope="module")
def split(blocks):
    return blocks.split((0.6, 0.2, 0.2), np.random.default_rng(1))


@pytest.fixture(scope="module")
def model(split):
    return Blend([DPCML(**SMALL), EASE(l2=5.0)]).fit(split.train, split.valid)


def test_scores_are_the_weighted_sum_of_standardised_scores(model, split):
    expected = np.zeros((60, 40))
    unseen = split.train.csr.toarray() == 0
    for member, weight in zip(model.members_, model.weights_, strict=True):
        scores = member.score(np.arange(60)).astype(float)
        for user in range(60):
            own = scores[user, unseen[user]]
            expected[user] += weight * (scores[user] - own.mean()) / own.std()
    np.testing.assert_allclose(model.score(np.arange(60)), expected, atol=1e-5)


def test_it_is_no_worse_than_its_members_on_the_validation_part(model, split):
    def of(one):
        return validation(one, split.train, split.valid, "NDCG@5")

    assert of(model) >= max(map(of, model.members_)) - 1e-9
    assert model.weights_.dtype == np.float32
    assert model.weights_.sum() == pytest.approx(1)


def test_a_member_that_knows_nothing_gets_no_weight(split):
    mixed = Blend([EASE(l2=5.0), Popularity()]).fit(split.train, split.valid)
    assert mixed.weights_[0] > 0.5


def test_weights_are_given_or_equal_without_a_validation_part(split):
    assert Blend([EASE(), ItemKNN()]).fit(split.train).weights_.tolist() == [0.5, 0.5]
    given = Blend([EASE(), ItemKNN()], weights=[3, 1]).fit(split.train, split.valid)
    assert given.weights_.tolist() == [0.75, 0.25]
    assert Blend([EASE()]).fit(split.train, split.valid).weights_.tolist() == [1.0]


@pytest.fixture(scope="module")
def world():
    return planted(150, 120, positives=20, n_categories=4, seed=2).data.split((0.6, 0.2, 0.2), 0)


def test_the_bonus_is_added_like_a_member(world):
    members = [DPCML(**SMALL), EASE(l2=5.0)]
    model = Blend(members, weights=[0.4, 0.6], minority_bonus=0.5).fit(world.train)
    plain = Blend(members, weights=[0.4, 0.6]).fit(world.train)
    assert (plain.minority_bonus_.tolist(), model.minority_bonus_.tolist()) == ([0.0], [0.5])
    rows = np.arange(9)
    added = minority_scores(world.train.items.attributes, world.train.csr[rows])
    unseen = world.train.csr[rows].toarray() == 0
    for user in rows:
        own = added[user, unseen[user]].astype(float)
        expected = plain.score([user])[0] + 0.5 * (added[user] - own.mean()) / own.std()
        np.testing.assert_allclose(model.score([user])[0], expected, atol=1e-4)
    history = world.train.item_ids[world.train.csr[[3]].indices]
    raised = model.score_new(history) - plain.score_new(history)
    assert np.corrcoef(raised, added[3])[0, 1] > 0.999, "new users get it too"


def test_the_bonus_is_found_with_the_weights_and_kept(world, tmp_path):
    members = [DPCML(**SMALL), EASE(l2=5.0)]
    model = Blend(members).fit(world.train, world.valid)
    assert model.minority_bonus_[0] > 0, "on the planted world minorities gain without a loss"
    again = load(model.save(tmp_path / "blend"))
    assert again.minority_bonus_.tolist() == model.minority_bonus_.tolist()
    assert again.score(np.arange(9)).tobytes() == model.score(np.arange(9)).tobytes()
    assert model.settled().minority_bonus == model.minority_bonus_[0]
    assert model.settled().fit(world.train).minority_bonus_.tolist() == model.minority_bonus_.tolist()
    assert Blend(members, minority_bonus=0.0).fit(world.train, world.valid).minority_bonus_.tolist() == [0.0]
    assert Blend([EASE(), ItemKNN()]).fit(world.train, world.valid).minority_bonus_.tolist() == [0.0], (
        "nobody knows interests"
    )


def test_a_blend_of_an_older_version_has_no_bonus(model, split):
    arrays = model.to_arrays()
    del arrays["minority_bonus_"], arrays["best_epochs_"]
    again = Blend.from_arrays(arrays, split.train, model.plain_params())
    assert again.minority_bonus_.tolist() == [0.0]


def test_a_bonus_needs_categories(split):
    train, valid = (Interactions.from_csr(part.csr) for part in (split.train, split.valid))
    with pytest.raises(ParameterError, match="these items have no categories"):
        Blend([EASE()], minority_bonus=0.1).fit(train)
    assert Blend([DPCML(**SMALL), EASE()]).fit(train, valid).minority_bonus_.tolist() == [0.0]


def test_the_test_part_changes_nothing(split, blocks):
    other = Interactions.from_codes(split.train.rows, split.train.indices, blocks.user_ids, blocks.items)
    models = [Blend([ItemKNN(), EASE(l2=5.0)]).fit(train, split.valid) for train in (split.train, other)]
    assert models[0].weights_.tolist() == models[1].weights_.tolist()


def test_the_models_passed_in_stay_unfitted(split):
    ease = EASE()
    Blend([ease]).fit(split.train)
    assert not hasattr(ease, "train_")


def test_interests_reasons_and_vectors_are_those_of_the_multi_interest_member(model):
    member = model.members_[0]
    assert [one.to_dict() for one in model.interests("user-3")] == [one.to_dict() for one in member.interests("user-3")]
    assert model.explain("user-3", [105]) == member.explain("user-3", [105])
    assert model.explain("user-3", [105])[0].interest is not None
    assert (model.fold_in([100, 101]) == member.fold_in([100, 101])).all()
    assert len(model.interests_new([100, 101])) == 2
    assert np.shares_memory(model.item_vectors_, member.item_vectors_)
    assert np.shares_memory(model.user_vectors_, member.user_vectors_)
    assert model.similar_users("user-3")[0].tolist() == member.similar_users("user-3")[0].tolist()


def test_without_a_multi_interest_member_it_explains_by_cooccurrence(split):
    plain = Blend([EASE(), ItemKNN()]).fit(split.train)
    assert plain.recommend("user-3", n=1, explain=True)[2][0].interest is None
    assert plain.multi_interest is None
    assert not hasattr(plain, "item_vectors_")
    with pytest.raises(ParameterError, match="knows no interests: add a member"):
        plain.interests("user-3")
    with pytest.raises(ParameterError, match="knows no interests to mix"):
        plain.recommend("user-3", mix=0.5, mix_by="interests")


def test_known_and_new_users_get_the_vectors_once(model, monkeypatch):
    calls = []
    fold = type(model.members_[0])._fold
    monkeypatch.setattr(type(model.members_[0]), "_fold", lambda self, likes: calls.append(1) or fold(self, likes))
    model.recommend_new([100, 101, 102], n=3, explain=True, mix=0.5)
    assert len(calls) == 1


def test_two_multi_interest_members_keep_their_own_vectors(split):
    two = Blend([DPCML(**SMALL), DPCML(**SMALL | {"dim": 6, "random_state": 1})]).fit(split.train)
    scores = two.recommend("user-3", n=5)[1]
    best = two.score([3])[0]
    best[split.train.of(3)] = -np.inf
    np.testing.assert_allclose(scores, np.sort(best)[::-1][:5], rtol=1e-5)
    assert two.recommend_new([100, 101], n=5)[0].shape == (5,)
    expected = {f"{m}.{a}_vectors_" for m in ("dpcml", "dpcml_2") for a in ("user", "item")}
    assert expected < set(two.to_arrays())


def test_the_dial_serves_the_smaller_interest_of_the_member():
    rng = np.random.default_rng(0)
    likes = rng.random((40, 40)) < 0.5
    likes[:20, 20:] = likes[20:, :20] = False
    likes[0, [20, 21, 22]] = True  # a user of both kinds, mostly of one
    members = [DPCML(n_vectors=2, dim=2, epochs=1, n_candidates=3), EASE(l2=5.0)]
    model = Blend(members, weights=[0.1, 0.9]).fit(likes)  # EASE alone favours the larger kind
    member = model.members_[0]  # with vectors that are interests: one for each kind of item
    member.item_vectors_ = np.repeat([[-1, 0], [1, 0]], 20, axis=0).astype(np.float32)
    member.item_vectors_ += rng.normal(0, 0.05, (40, 2)).astype(np.float32)
    member.user_vectors_ = np.tile(np.array([[-1, 0], [1, 0]], np.float32), (40, 1, 1))
    shares = []
    for mix in (0.0, 0.5, 1.0):
        ids, scores, reasons = model.recommend(0, n=8, mix=mix, explain=True)
        assert len(set(ids.tolist())) == 8
        assert (np.diff(scores) <= 0).all()
        assert [reason.interest for reason in reasons] == (ids >= 20).astype(int).tolist()
        shares.append(int((ids >= 20).sum()))
    assert shares[0] <= shares[1] <= shares[2]
    assert shares[0] < shares[2]


def test_parameters_of_members_can_be_read_and_set():
    blend = Blend([EASE(l2=7.0), ItemKNN(), EASE()])
    assert blend.get_params()["ease__l2"] == 7.0
    assert blend.get_params()["ease_2__l2"] is None
    assert "ease__l2" not in blend.get_params(deep=False)
    blend.set_params(ease_2__l2=3.0, itemknn__k=5, metric="P@3")
    assert (blend.models[2].l2, blend.models[1].k, blend.metric) == (3.0, 5, "P@3")
    assert blend.set_params(**blend.get_params()).models[0].l2 == 7.0
    with pytest.raises(ParameterError, match="EASE has no parameter 'l3'"):
        blend.set_params(ease__l3=1)
    with pytest.raises(ParameterError, match="l2=-1"):
        blend.set_params(itemknn__k=6, ease__l2=-1)
    assert blend.models[1].k == 5, "nothing changes if one value is refused"


def test_a_name_without_a_prefix_is_that_of_the_first_model_or_of_the_only_one():
    blend = Blend().set_params(epochs=7, l2_per_like=2.0)
    dpcml, ease, _, ials = blend.models
    assert (dpcml.epochs, ials.epochs, ease.l2_per_like) == (7, IALS().epochs, 2.0)
    with pytest.raises(ParameterError, match="Blend has no parameter 'alphas'"):
        blend.set_params(alphas=1.0)
    with pytest.raises(ParameterError, match="Blend has no parameter 'l2'"):  # of EASE or of iALS?
        blend.set_params(l2=1.0)


def test_callbacks_follow_the_history_that_the_blend_keeps(split):
    seen = []
    blend = Blend([DPCML(**SMALL), IALS(dim=3, epochs=4)])
    blend.fit(split.train, callbacks=[lambda history: seen.append(len(history.epochs))])
    assert seen == list(range(1, len(blend.history_.epochs) + 1))
    assert len(blend.members_[1].history_.epochs) == 4


def test_sklearn_clones_the_members_too():
    base = pytest.importorskip("sklearn.base")
    blend = Blend([EASE(l2=7.0)])
    again = base.clone(blend)
    assert again.models[0] is not blend.models[0]
    assert again.models[0].l2 == 7.0


def test_seed_and_threads_reach_the_members(split):
    found = Blend([DPCML(**SMALL), EASE()], random_state=5, n_threads=1).fit(split.train)
    assert (found.members_[0].random_state, found.members_[0].n_threads) == (5, 1)
    assert found.models[0].random_state == 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"models": []}, "pass a list of models"),
        ({"models": [EASE]}, "pass a list of models"),
        ({"models": EASE()}, "pass a list of models"),
        ({"weights": [1.0]}, "one number for each of 4 models"),
        ({"weights": [1.0, 1.0, 1.0, -1.0]}, "at least 0"),
        ({"weights": [0, 0, 0, 0]}, "above 0"),
        ({"minority_bonus": -0.1}, "at least 0"),
        ({"minority_bonus": "much"}, "minority_bonus"),
        ({"metric": "NDGC@5"}, "did you mean"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ParameterError, match=message):
        Blend(**parameters)


def test_saved_members_come_back_with_their_parameters(split, tmp_path):
    inner = Blend([ItemKNN(k=3), EASE(l2=2.0, form="sparse", k=5)], weights=(0.25, 0.75))
    model = Blend([DPCML(**SMALL, diversity=(0.1, 0.3)), inner]).fit(split.train, split.valid)
    again = load(model.save(tmp_path / "blend"))
    assert again.models[0].diversity == (0.1, 0.3)
    assert [type(one) for one in again.models[1].models] == [ItemKNN, EASE]
    assert again.weights_.tolist() == model.weights_.tolist()
    assert again.score(np.arange(60)).tobytes() == model.score(np.arange(60)).tobytes()
    assert again.interests("user-3")[0].to_dict() == model.interests("user-3")[0].to_dict()
    assert len(again.history_.epochs) == 5


def test_partial_fit_adds_users_to_all_members(split):
    model = Blend([DPCML(**SMALL), EASE(l2=5.0)]).fit(split.train, split.valid)
    weights = model.weights_.tolist()
    more = Interactions.from_csr(np.ones((1, 3)), user_ids=["new"], item_ids=[100, 101, 102])
    model.partial_fit(more, epochs=2)
    assert {member.train_.n_users for member in model.members_} == {61} == {model.train_.n_users}
    assert (model.recommend("new", n=5)[0] < 120).mean() >= 0.8
    assert model.weights_.tolist() == weights


def test_what_was_found_outlives_saving_and_new_likes(world, tmp_path):
    members = [DPCML(**SMALL), EASE(l2_per_like=None, beta=None), RP3Beta(alpha=None, beta=None), IALS(dim=4)]
    model = Blend(members).fit(world.train, world.valid)

    def found(blend):
        return [(one.l2_per_like, one.beta) if isinstance(one, EASE) else one for one in blend.settled().models][1]

    def epochs(blend):
        return [getattr(one, "stop_after", None) for one in blend.settled().models]

    wanted, best = found(model), epochs(model)
    assert None not in (*wanted, best[0], best[3])
    again = load(model.save(tmp_path / "blend"))
    assert (found(again), epochs(again)) == (wanted, best)
    more = Interactions.from_csr(np.ones((1, 3)), user_ids=[1000], item_ids=world.train.item_ids[:3].tolist())
    again.partial_fit(more, epochs=2)
    model.partial_fit(more, epochs=2)
    once_more = load(again.save(tmp_path / "updated"))
    assert found(once_more) == wanted
    assert epochs(once_more)[3] == best[3]
    assert once_more.score([0, 5]).tobytes() == model.score([0, 5]).tobytes()


def test_new_items_stay_in_all_members_when_likes_come_in(world):
    model = Blend([DPCML(**SMALL), EASE(), IALS(dim=4)]).fit(world.train, world.valid)
    names = world.train.items.attributes.names
    fresh = ItemTable(np.array([5000]), np.array(["New"], dtype=object), Attributes.from_sets([{str(names[0])}]))
    model.add_items(fresh)
    assert np.abs(model.members_[2].item_factors_[-1]).max() > 0
    model.partial_fit(Interactions.from_csr(np.ones((1, 1)), user_ids=[0], item_ids=[3]), epochs=1)
    assert np.abs(model.members_[2].item_factors_[-1]).max() > 0


def test_evaluation_leaves_interests_out_where_no_member_has_any(world):
    model = Blend([EASE(), ItemKNN()]).fit(world.train, world.valid)
    found = evaluate(model, world.train, world.test, metrics=["beyond_accuracy"]).metrics
    assert "interest_agreement" not in found
    assert "minority_R@10" in found
    with pytest.raises(ParameterError, match="knows no interests: add a member"):
        model.nearest_interest([0], [0])


def test_each_member_in_epochs_has_a_checkpoint_of_its_own(split, tmp_path):
    blend = Blend([DPCML(**SMALL), EASE(), DPCML(**SMALL | {"random_state": 1})])
    whole = blend.fit(split.train, split.valid).score([0, 40])
    at = {"checkpoint": Checkpoint(tmp_path / "run", every_epochs=2), "progress": False}
    Blend(blend.models).fit(split.train, split.valid, **at)
    assert (tmp_path / "run" / "checkpoint.safetensors").exists()
    assert (tmp_path / "run" / "dpcml_2" / "checkpoint.safetensors").exists()
    resumed = Blend(blend.models).fit(split.train, split.valid, **at, resume=True)
    assert resumed.score([0, 40]).tobytes() == whole.tobytes()
    with pytest.raises(ParameterError, match="checkpoint does not apply"):
        Blend([EASE()]).fit(split.train, checkpoint=tmp_path)


def test_each_member_tells_its_validation_figure_as_soon_as_it_is_trained(world, capfd):
    blend = Blend([DPCML(**SMALL), EASE(), IALS(dim=4), RP3Beta()]).fit(world.train, world.valid, progress=True)
    told = dict(re.findall(r"(\w+): NDCG@5 ([\d.]+) on the validation part", capfd.readouterr().err))
    assert list(told) == ["ials", "rp3beta", "dpcml", "ease"]
    for member in blend.members_:
        assert float(told[member.name]) == pytest.approx(
            validation(member, world.train, world.valid, "NDCG@5"), abs=1e-4
        )
    Blend([EASE(), RP3Beta()]).fit(world.train, world.valid, progress=False)
    assert not capfd.readouterr().err


@pytest.mark.parametrize("models", [(1,), [EASE], "ease", 3, [EASE(), "dpcml"]])
def test_what_is_no_list_of_models_is_one_error(models):
    with pytest.raises(ParameterError, match="pass a list of models"):
        create("blend", models=models, dim=8)


def test_from_the_command_line_to_a_report(tmp_path, monkeypatch):
    planted(120, 90, positives=15, n_categories=4, seed=3).write_csv(tmp_path / "likes.csv")
    monkeypatch.chdir(tmp_path)
    source = DataSource("likes.csv", {"core": 2})
    members = [DPCML(**SMALL), DPCML(**SMALL | {"dim": 5}), EASE()]
    found = train_and_save(create("blend", models=members), source.read(), "m", source=source)
    assert found["epochs"] == 5
    assert not checkpoint_folder("m").exists(), "neither the checkpoint of the first member nor that of the second"
    report = evaluate_saved("m", protocol="released", k=(3,))
    assert 0 <= report.metrics["NDCG@3"] <= 1
    assert report.to_dict()["parameters"]["models"][2]["model"] == "ease"
    json.dumps(report.to_dict())


def test_it_is_served_and_exported_with_its_interests(model, tmp_path):
    pytest.importorskip("fastapi")
    from dpcml.serving.model_store import LoadedModel

    loaded = LoadedModel.load(model.save(tmp_path / "blend"))
    assert all(loaded.capabilities.values())
    assert len(loaded.item_map.rows) == 40
    folder = export(model, "faiss-ready", tmp_path / "arrays")
    assert np.load(folder / "queries.npy").shape == (120, 4)
