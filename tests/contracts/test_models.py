"""The contract that every registered model keeps: add a model to the registry and it is tested here."""

import inspect

import numpy as np
import pytest
from scipy import sparse

from dpcml import Checkpoint, Interactions, Popularity, evaluate, load, save
from dpcml.models import MODELS, Recommender
from dpcml.utils.errors import DataError, NotFittedError, ParameterError, UnknownIdError

pytestmark = pytest.mark.parametrize("name", list(MODELS))


@pytest.fixture(scope="module")
def split(blocks):
    return blocks.split((0.6, 0.2, 0.2), np.random.default_rng(1))


@pytest.fixture
def model(name, split):
    return MODELS[name]().fit(split.train, valid=split.valid)


def test_class_is_documented_and_named(name):
    cls = MODELS[name]
    assert cls.name == name
    assert ">>>" in inspect.getdoc(cls)
    assert cls.fit(cls(), np.eye(4)).__class__ is cls


def test_scores_have_the_shape_of_the_catalogue(model, split):
    scores = model.score(np.array([3, 0, 3]))
    assert scores.shape == (3, split.train.n_items)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(scores[0], scores[2], rtol=1e-5, atol=1e-6)
    assert model.score([]).shape == (0, split.train.n_items)


def test_planted_blocks_are_learned(name, model, split):
    train, valid, test = split
    found = evaluate(model, train, test, valid=valid).metrics["P@3"]
    base = evaluate(Popularity().fit(train), train, test, valid=valid).metrics["P@3"]
    assert found >= base if name == "popularity" else found > 1.3 * base


def test_same_seed_same_scores(name, model, split):
    again = MODELS[name]().fit(split.train, valid=split.valid)
    assert (again.score(np.arange(60)) == model.score(np.arange(60))).all()


def test_parameters_round_trip_and_unknown_ones_are_refused(name):
    model = MODELS[name]()
    assert MODELS[name](**model.get_params()).get_params() == model.get_params()
    assert model.set_params(**model.get_params()) is model
    with pytest.raises(ParameterError, match="has no parameter 'no_such'"):
        model.set_params(no_such=1)
    with pytest.raises(TypeError, match="no_such"):
        model.fit(np.ones((3, 4)), no_such=1)


def test_sklearn_clones_it(name):
    base = pytest.importorskip("sklearn.base")
    model = MODELS[name]()
    if hasattr(model, "dim"):
        model.set_params(dim=7)
    again = base.clone(model)
    assert type(again) is type(model)
    assert again is not model
    assert again.get_params(deep=True) == again.get_params(deep=False) == model.get_params()
    assert not hasattr(base.clone(model.fit(np.eye(9) + np.eye(9, k=1))), "train_")


def test_it_is_at_most_two_classes_below_the_base(name):
    below = [cls for cls in MODELS[name].__mro__ if issubclass(cls, Recommender) and cls is not Recommender]
    assert 1 <= len(below) <= 2


def test_fit_takes_the_same_keywords_everywhere(name, split, tmp_path):
    model, epochs = MODELS[name](), []
    assert "fit" not in vars(MODELS[name])
    if model.iterative:
        options = {"checkpoint": tmp_path, "progress": False, "callbacks": [lambda history: len(history.epochs) == 2]}
        own = "" if hasattr(model, "epochs") else "dpcml__"  # the parameter of a member
        dim = {f"{own}dim": 8} if own or hasattr(model, "dim") else {}
        model.set_params(**{f"{own}epochs": 4}, **dim).fit(split.train, **options)
        assert len(model.history_.epochs) == 2
        whole = MODELS[name](**model.get_params(deep=False)).fit(split.train, split.valid)
        stopped = MODELS[name](**model.get_params(deep=False))
        at_two = {"checkpoint": Checkpoint(tmp_path / "run", every_epochs=2), "callbacks": [epochs.append]}
        stopped.fit(split.train, split.valid, **at_two, progress=False)
        resumed = MODELS[name](**model.get_params(deep=False)).fit(split.train, split.valid, **at_two, resume=True)
        assert resumed.score([0, 5]).tobytes() == whole.score([0, 5]).tobytes()
        return
    model.fit(split.train, split.valid, progress=True)
    for option in ({"checkpoint": tmp_path}, {"resume": True}, {"callbacks": [print]}):
        with pytest.raises(ParameterError, match=f"{next(iter(option))} does not apply"):
            model.fit(split.train, **option)


def test_recommend_speaks_external_ids_and_leaves_out_seen_items(model, split):
    train = split.train
    ids, scores = model.recommend(["user-3", "user-40"], n=7)
    assert ids.shape == scores.shape == (2, 7)
    assert (np.diff(scores, axis=1) <= 0).all()
    for row, user in enumerate((3, 40)):
        seen = set(train.item_ids[train.of(user)].tolist())
        assert not seen & set(ids[row].tolist())
        assert len(set(ids[row].tolist())) == 7
        best = model.score([user])[0]
        best[train.of(user)] = -np.inf
        np.testing.assert_allclose(scores[row], np.sort(best)[::-1][:7], rtol=1e-5)
    one, one_scores = model.recommend("user-3", n=7)
    assert one.tolist() == ids[0].tolist()
    assert one_scores.shape == (7,)


def test_recommend_never_gives_more_than_there_is(model, split):
    train = split.train
    ids, scores = model.recommend("user-3", n=10**9)
    assert len(ids) == train.n_items - len(train.of(3))
    assert np.isfinite(scores).all()
    assert len(model.recommend("user-3", n=10**9, exclude_seen=False)[0]) == train.n_items


def test_recommend_among_some_items(model, split):
    unseen = np.setdiff1d(np.arange(40), split.train.of(3))[:4]
    ids, _ = model.recommend("user-3", n=10, items=100 + unseen)
    assert sorted(ids.tolist()) == (100 + unseen).tolist()
    with pytest.raises(UnknownIdError, match="unknown item '7'"):
        model.recommend("user-3", items=[7])


def test_users_with_fewer_candidates_than_others_are_filled_up(name):
    data = Interactions.from_csr(np.array([[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 0, 1]]))
    ids, scores = MODELS[name]().fit(data).recommend([0, 1], n=3)
    assert ids[0, 1:].tolist() == [-1, -1]
    assert np.isneginf(scores[0, 1:]).all()
    assert sorted(ids[1].tolist()) == [1, 2, 3]


def test_a_user_who_has_seen_everything_gets_nothing_or_a_clear_error(name):
    data = Interactions.from_csr(np.array([[1, 1, 1], [1, 0, 0], [0, 1, 0]]))
    try:
        ids, _ = MODELS[name]().fit(data).recommend(0, n=3)
    except DataError as error:
        assert "user 0 likes all 3 items" in str(error)  # noqa: PT017
    else:
        assert ids.tolist() == []


def test_bad_calls(name, model):
    with pytest.raises(UnknownIdError, match="unknown user 'nobody'"):
        model.recommend("nobody")
    for n in (0, -3, 2.5, True):
        with pytest.raises(ParameterError, match="at least 1"):
            model.recommend("user-3", n=n)
    with pytest.raises(UnknownIdError, match="unknown user 'nobody'"):
        model.similar_users(["user-3", "nobody"])
    for rows in ([60], [-1], ["user-3"]):
        with pytest.raises(ParameterError, match="row"):
            model.score(rows)
    with pytest.raises(NotFittedError, match="call fit"):
        MODELS[name]().score([0])
    with pytest.raises(DataError, match="at least one positive"):
        MODELS[name]().fit(sparse.csr_array((3, 3)))


def test_similar_items_or_a_clear_cannot(model):
    try:
        ids, scores = model.similar_items(105, n=5)
    except ParameterError as error:
        assert "no notion of similar items" in str(error)  # noqa: PT017
        return
    assert len(ids) == 5
    assert 105 not in ids
    assert (ids < 120).sum() >= 4, "items of the other block are not alike"
    assert (np.diff(scores) <= 0).all()


def test_new_users_are_served_or_there_is_a_clear_cannot(model, split):
    left, right = np.arange(100, 110), np.arange(130, 140)
    if hasattr(model, "fold_in"):  # with 100 numbers each, 40 items lie apart one by one and not by blocks
        dim = "dim" if hasattr(model, "dim") else "dpcml__dim"
        model = type(model)().set_params(**{dim: 4}).fit(split.train, valid=split.valid)
    try:
        scores = model.score_new([left, right[:3]])
    except ParameterError as error:
        assert "cannot serve users it was not trained on" in str(error)  # noqa: PT017
        assert type(model)._score_histories is Recommender._score_histories
        return
    assert scores.shape == (2, split.train.n_items)
    assert np.isfinite(scores).all()
    if model.name != "popularity":
        assert scores[0, 10:20].mean() > scores[0, 20:].max(), "more of the block that they like"
        assert scores[1, 20:30].mean() > scores[1, :20].max()
    one = model.score_new(left.tolist())
    assert one.shape == (split.train.n_items,)
    np.testing.assert_allclose(one, scores[0], rtol=1e-5, atol=1e-6)
    twice_and_as_text = [str(item) for item in left[::-1]] * 2
    np.testing.assert_allclose(model.score_new(twice_and_as_text), one, rtol=1e-5, atol=1e-6)


def test_a_user_without_likes_gets_popular_items(name, split):
    """As after a split by time; no model knows anything of such a user."""
    train = split.train.select(split.train.rows != 3)
    model = MODELS[name]().fit(train)
    someone, nobody = train.user_ids[[5, 3]]
    ids, scores, reasons = model.recommend([someone, nobody], n=4, explain=True)
    popular = np.argsort(-train.per_item, kind="stable")[:4]
    assert ids[1].tolist() == train.item_ids[popular].tolist()
    assert scores[1].tolist() == train.per_item[popular].tolist()
    assert reasons[1][0].text == f"popular: {train.per_item[popular[0]]} users like it"
    assert ids[0].tolist() == model.recommend(someone, n=4)[0].tolist()
    assert ids[1][0] not in model.recommend(nobody, n=4, exclude=[ids[1][0]])[0]


def test_those_who_score_by_history_alone_score_a_known_user_like_a_new_one(name, model, split):
    train = split.train
    if MODELS[name].score is not Recommender.score:
        pytest.skip("knows its users by more than their history")
    users = [3, 40, 59]
    histories = [train.item_ids[train.of(user)] for user in users]
    assert (model.score_new(histories) == model.score(users)).all()


def test_histories_that_say_nothing_are_refused(name, model):
    with pytest.raises(UnknownIdError, match="unknown item '7'"):
        model.score_new([[105], [106, 7]])
    with pytest.raises(ParameterError, match="the history is empty"):
        model.score_new([])
    with pytest.raises(ParameterError, match="history 1 is empty"):
        model.score_new([[105], []])
    with pytest.raises(ParameterError, match="sequence of item ids"):
        model.score_new(105)
    with pytest.raises(NotFittedError, match="call fit"):
        MODELS[name]().score_new([105])


def test_every_item_of_a_list_has_a_reason(model, split):
    train = split.train
    ids, scores, reasons = model.recommend(["user-3", "user-40"], n=4, explain=True)
    plain = model.recommend(["user-3", "user-40"], n=4)
    assert (ids == plain[0]).all()
    assert (scores == plain[1]).all()
    for user, row in zip((3, 40), reasons, strict=True):
        assert len(row) == 4
        for reason in row:
            assert reason.text.startswith("because ")
            assert set(reason.liked) <= set(train.item_ids[train.of(user)].tolist())
            assert 0 <= reason.share <= 1


def test_filters_hold(model):
    ids, _ = model.recommend("user-3", n=40, where={"category": "Right"})
    assert (ids >= 120).all()
    ids, _ = model.recommend(
        "user-3", n=40, where={"category": ["left", "right"]}, items=[105, 139], exclude_seen=False
    )
    assert sorted(ids.tolist()) == [105, 139]
    with pytest.raises(ParameterError, match="no item is left to choose from"):
        model.recommend("user-3", items=[105], where={"category": "right"})


def test_lists_for_people_nobody_has_met_or_a_clear_cannot(model, split):
    history = np.arange(100, 110)
    try:
        ids, scores, reasons = model.recommend_new(history, n=5, explain=True)
    except ParameterError as error:
        assert "cannot serve users it was not trained on" in str(error)  # noqa: PT017
        return
    assert not set(ids.tolist()) & set(history.tolist())
    assert (np.diff(scores) <= 0).all()
    assert all(set(reason.liked) <= set(history.tolist()) for reason in reasons)
    if model.name != "popularity":
        assert (ids < 120).sum() >= 4, "more of the block that they like"
    several, _ = model.recommend_new([history, history + 20], n=5)
    assert several.shape == (2, 5)
    assert several[0].tolist() == ids.tolist()


def test_similar_users_are_of_the_same_block(model, split):
    ids, values = model.similar_users("user-3", n=5)
    assert len(ids) == 5
    assert "user-3" not in ids
    assert (np.diff(values) <= 0).all()
    liked = [split.train.of(row) for row in split.train.user_rows(ids)]
    assert np.mean([(items < 20).mean() for items in liked]) > 0.7


def test_takes_a_matrix_or_a_frame(name):
    likes = np.kron(np.eye(2), np.ones((3, 4)))
    likes[0, 3] = 0
    by_matrix = MODELS[name]().fit(likes)
    users, items = np.nonzero(likes)
    pandas = pytest.importorskip("pandas")
    by_frame = MODELS[name]().fit(pandas.DataFrame({"user_id": users, "item_id": items}))
    np.testing.assert_allclose(by_matrix.score([0, 5]), by_frame.score([0, 5]), rtol=1e-5)


def test_saved_and_loaded_it_scores_the_same_bits_and_recommends_the_same(model, split, tmp_path):
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    users = np.arange(split.train.n_users)
    assert again.score(users).tobytes() == model.score(users).tobytes()
    for found, expected in zip(again.recommend(["user-3"]), model.recommend(["user-3"]), strict=True):
        assert found.tolist() == expected.tolist()
    assert again.train_.content_hash == split.train.content_hash
    save(again, tmp_path / "model")  # over itself
    assert load(tmp_path / "model").score(users).tobytes() == model.score(users).tobytes()


def test_items_nobody_has_can_be_scored(name):
    likes = np.kron(np.eye(2), np.ones((3, 4)))
    likes[:, 2] = 0
    assert np.isfinite(MODELS[name]().fit(likes).score([0])).all()
