import numpy as np
import pytest
from scipy import sparse

from benchmarks.fold_in import FromHistories
from dpcml import CML, DPCML, EASE, GFJA, Interest, Reason, evaluate
from dpcml.data.synthetic import planted
from dpcml.evaluation.groups import majority_category
from dpcml.utils.errors import DataError, NotFittedError, ParameterError, UnknownIdError

SMALL = {"dim": 8, "epochs": 25, "n_candidates": 6, "learning_rate": 0.01, "patience": None}


@pytest.fixture(scope="module")
def world():
    return planted(400, 160, seed=2)


@pytest.fixture(scope="module")
def parts(world):
    return world.data.split((0.6, 0.2, 0.2), 0)


@pytest.fixture(scope="module")
def model(parts):
    return DPCML(n_vectors=3, **SMALL).fit(parts.train, parts.valid)


def test_interests_are_the_history_in_groups(model, parts):
    train = parts.train
    for user in (0, 17, 399):
        found = model.interests(user)
        assert all(isinstance(one, Interest) for one in found)
        assert sorted(one.number for one in found) == [0, 1, 2]
        assert [one.share for one in found] == sorted((one.share for one in found), reverse=True)
        assert sum(one.share for one in found) == pytest.approx(1)
        liked = train.item_ids[train.of(user)].tolist()
        assert sorted(i for one in found for i in one.items.tolist()) == liked
        assert len({one.name for one in found}) == 3
        for one in found:
            assert one.share == pytest.approx(len(one.items) / len(liked))
            assert (one.vector == model.user_vectors_[user, one.number]).all()
            near = ((model.item_vectors_[train.item_columns(one.items)] - one.vector) ** 2).sum(axis=1)
            assert (np.diff(near) >= -1e-5).all()
            assert len(one.categories) > 0
            assert [share for _, share in one.categories] == sorted((s for _, s in one.categories), reverse=True)


def test_interests_are_of_one_user(model):
    with pytest.raises(ParameterError, match=r"user=\[3, 4\]: pass one id"):
        model.interests([3, 4])
    assert [one.name for one in model.interests([3])] == [one.name for one in model.interests(3)]


def test_nearest_interest_is_the_interest_that_holds_the_item(model, parts):
    train = parts.train
    users = train.user_ids[train.rows]
    found = model.nearest_interest(users, train.item_ids[train.indices])
    assert found.shape == users.shape
    for user in (0, 17, 399):
        of = dict(zip(train.item_ids[train.of(user)].tolist(), found[train.rows == user].tolist(), strict=True))
        assert of == {item: one.number for one in model.interests(user) for item in one.items.tolist()}
    apart = model.user_vectors_[3] - model.item_vectors_[:, None]  # items that nobody likes have a nearest vector too
    expected = (apart**2).sum(axis=2).argmin(axis=1)
    assert model.nearest_interest(np.full(160, 3), np.arange(160)).tolist() == expected.tolist()
    assert model.nearest_interest("3", 5).tolist() == [expected[5]]
    assert model.nearest_interest([], []).tolist() == []


def test_of_equal_vectors_the_first_is_nearest(model, parts):
    twin = DPCML(n_vectors=3, **{**SMALL, "epochs": 1}).fit(parts.train)
    twin.user_vectors_ = np.repeat(model.user_vectors_[:, :1], 3, axis=1)
    twin.item_vectors_ = model.item_vectors_
    assert not twin.nearest_interest(np.arange(160), np.arange(160)).any()


def test_nearest_interest_of_wrong_pairs(model):
    with pytest.raises(ParameterError, match=r"users of shape \(2,\) and items of shape \(3,\): pass one item for"):
        model.nearest_interest([1, 2], [1, 2, 3])
    with pytest.raises(DataError, match="user ids of 2 dimensions; pass one id, or a sequence of ids"):
        model.nearest_interest([[1], [2]], [[1], [2]])
    with pytest.raises(UnknownIdError, match="unknown user '9999'"):
        model.nearest_interest([1, 9999], [1, 2])
    with pytest.raises(UnknownIdError, match="unknown item '9999'"):
        model.nearest_interest([1, 2], [1, 9999])
    with pytest.raises(NotFittedError):
        DPCML().nearest_interest([1], [1])


@pytest.mark.parametrize("mix", [0.0, 0.5])
def test_somebody_new_is_folded_in_once_for_a_list_and_its_reasons(model, monkeypatch, mix):
    folded = []
    fold = model._fold
    monkeypatch.setattr(model, "_fold", lambda likes: folded.append(likes.shape[0]) or fold(likes))
    model.recommend_new([[1, 5, 9], [2, 3]], n=4, explain=True, mix=mix)
    assert folded == [2]


def test_liked_items_are_assigned_to_vectors_once_for_a_mixed_list_with_reasons(model, monkeypatch):
    from dpcml.retrieval import profile

    assigned, compute = [], profile.distances
    monkeypatch.setattr(profile, "distances", lambda *arrays: assigned.append(len(arrays[1])) or compute(*arrays))
    model.recommend([3, 4], n=4, explain=True, mix=0.5)
    n_items = len(model.item_vectors_)  # interests without liked items get their names from the whole catalogue
    assert len([count for count in assigned if count < n_items]) == 2, "once per user"


def test_reasons_name_the_vector_that_won_and_items_that_are_liked(model, parts):
    train = parts.train
    ids, _, reasons = model.recommend([3, 4], n=6, explain=True)
    for user, row, why in zip((3, 4), ids, reasons, strict=True):
        shares = {one.number: one for one in model.interests(user)}
        for item, reason in zip(row.tolist(), why, strict=True):
            assert isinstance(reason, Reason)
            vector = model.item_vectors_[train.item_columns([item])[0]]
            assert reason.interest == ((model.user_vectors_[user] - vector) ** 2).sum(axis=1).argmin()
            assert reason.share == shares[reason.interest].share
            assert 1 <= len(reason.liked) <= 3
            assert set(reason.liked) <= set(train.item_ids[train.of(user)].tolist())
            titles = ", ".join(train.items.title(int(i)) for i in train.item_columns(list(reason.liked)))
            if reason.share:
                own = train.items.attributes.of(int(train.item_columns([item])[0]))
                assert set(reason.categories) <= set(own), "only categories that the item has"
                assert reason.text.endswith(titles)
                assert set(reason.liked) <= set(shares[reason.interest].items.tolist())
    one = model.recommend(3, n=6, explain=True)[2]
    assert one == reasons[0]


def test_models_without_interests_explain_by_what_the_same_people_like(parts):
    ids, _, reasons = EASE().fit(parts.train).recommend(3, n=4, explain=True)
    assert len(ids) == len(reasons) == 4
    for reason in reasons:
        assert reason.interest is None
        assert set(reason.liked) <= set(parts.train.item_ids[parts.train.of(3)].tolist())
        assert reason.text.startswith("because you like ")


def test_reasons_turn_the_history_of_all_people_at_most_once(parts, monkeypatch):
    model, turned = EASE().fit(parts.train), []
    before = model.recommend([3, 5], n=4, explain=True)[2]
    turn = sparse.csr_array.transpose
    monkeypatch.setattr(sparse.csr_array, "transpose", lambda m, *a, **k: turned.append(m.shape) or turn(m, *a, **k))
    assert model.recommend([3, 5], n=4, explain=True)[2] == before
    assert turned  # of the user's own items
    assert (parts.train.n_users, parts.train.n_items) not in turned


@pytest.mark.parametrize("by", ["interests", "categories", None])
def test_the_larger_mix_the_fewer_items_of_the_largest_interest(model, parts, by):
    users, train = np.arange(60), parts.train
    plain = model.recommend(users, n=10)[0]
    assert (model.recommend(users, n=10, mix=0, mix_by=by)[0] == plain).all()
    largest = [model.interests(user)[0].number for user in users]
    major = majority_category(train)
    found = []
    for mix in (0.0, 0.3, 1.0):
        ids, _, reasons = model.recommend(users, n=10, mix=mix, mix_by=by, explain=True)
        if by == "interests":
            found.append(sum(one.interest == c for row, c in zip(reasons, largest, strict=True) for one in row))
        else:
            matrix = train.items.attributes.matrix
            found.append(sum(matrix[train.item_columns(row)][:, [major[u]]].sum() for u, row in enumerate(ids)))
    assert found[0] > found[1] > found[2]


def test_models_without_interests_mix_by_categories(parts):
    ease = EASE().fit(parts.train)
    assert ease.recommend(3, mix=1.0)[0].tolist() != ease.recommend(3)[0].tolist()
    with pytest.raises(ParameterError, match="EASE knows no interests to mix"):
        ease.recommend(3, mix=0.5, mix_by="interests")
    with pytest.raises(ParameterError, match="mix_by='genres'"):
        ease.recommend(3, mix=0.5, mix_by="genres")
    plain = EASE().fit(parts.train.csr)
    with pytest.raises(ParameterError, match="EASE knows no interests to mix"):
        plain.recommend(3, mix=0.5)
    with pytest.raises(ParameterError, match="mix_by='categories': these items have none"):
        plain.recommend(3, mix=0.5, mix_by="categories")


def test_mixed_lists_hold_unseen_allowed_items_once(model, parts):
    train = parts.train
    ids = model.recommend(np.arange(40), n=20, mix=0.7)[0]
    for user, row in enumerate(ids):
        assert len(set(row.tolist())) == 20
        assert not set(row.tolist()) & set(train.item_ids[train.of(user)].tolist())
    category = str(train.items.attributes.names[0])
    some = model.recommend(0, n=5, mix=0.7, where={"category": category})[0]
    assert all(category in train.items.attributes.of(int(i)) for i in train.item_columns(some))


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "3"])
def test_a_number_of_items_that_makes_no_sense(model, n):
    for call in (model.recommend, model.similar_users, model.similar_items):
        with pytest.raises(ParameterError, match="must be a whole number of at least 1"):
            call(3, n=n)
    with pytest.raises(ParameterError, match="must be a whole number of at least 1"):
        model.recommend_new([3, 4], n=n)


@pytest.mark.parametrize("mix", [-0.1, 1.1, float("nan"), "half", True, None])
def test_a_dial_out_of_range(model, mix):
    with pytest.raises(ParameterError, match="must be a number from 0 to 1"):
        model.recommend(3, mix=mix)
    with pytest.raises(ParameterError, match="must be a number from 0 to 1"):
        model.recommend_new([3], mix=mix)


def test_ten_to_the_ninth(model, parts):
    left = parts.train.n_items - len(parts.train.of(3))
    for mix in (0.0, 0.5):
        ids, scores = model.recommend(3, n=10**9, mix=mix)
        assert len(ids) == len(set(ids.tolist())) == left
        assert np.isfinite(scores).all()


def test_other_bad_input(model):
    for call in (model.interests, model.recommend, model.similar_users):
        with pytest.raises(UnknownIdError, match="unknown user '9999'"):
            call(9999)
    with pytest.raises(UnknownIdError, match="unknown item '9999'"):
        model.similar_items(9999)
    for call in (model.fold_in, model.interests_new):
        with pytest.raises(ParameterError, match="the history is empty"):
            call([])
    for call in (model.fold_in, model.interests_new, model.recommend_new):
        with pytest.raises(UnknownIdError, match="unknown item '9999'"):
            call([1, 9999])
        with pytest.raises(ParameterError, match="sequence of item ids"):
            call(7)
    for call in (model.fold_in, model.interests_new):
        with pytest.raises(ParameterError, match="one user: call it for each"):
            call([[1], [2]])
    with pytest.raises(ParameterError, match="no item is left"):
        model.recommend_new([1], items=[])
    with pytest.raises(DataError, match="all 160 items are liked"):
        model.fold_in(np.arange(160))


def test_ids_as_text_and_as_numbers_are_the_same(model):
    assert model.recommend("3", n=4)[0].tolist() == model.recommend(3, n=4)[0].tolist()
    assert (model.fold_in(["5", "7"]) == model.fold_in([7, 5])).all()


@pytest.mark.parametrize(("kind", "negatives"), [(DPCML, "hard"), (CML, "two-stage"), (GFJA, "popularity")])
def test_folded_in_people_are_served_nearly_as_well_as_trained_ones(kind, negatives, parts):
    vectors = {} if kind is CML else {"n_vectors": 3}
    model = kind(**vectors, **SMALL, negatives=negatives).fit(parts.train, parts.valid)
    found = {}
    for name, scorer in {"trained": model, "folded": FromHistories(model, parts.train)}.items():
        found[name] = evaluate(scorer, parts.train, parts.test, valid=parts.valid, k=3).metrics["MAP"]
    assert found["folded"] > 0.85 * found["trained"]
    vectors = model.fold_in(parts.train.item_ids[parts.train.of(0)])
    assert vectors.shape == model.user_vectors_[0].shape
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_recommend_new_is_recommend_with_folded_in_vectors(model, parts):
    train = parts.train
    history = train.item_ids[train.of(8)]
    ids, scores, reasons = model.recommend_new(history, n=5, mix=0.4, explain=True)
    assert len(ids) == len(scores) == len(reasons) == 5
    assert not set(ids.tolist()) & set(history.tolist())
    plain, values = model.recommend_new(history, n=5)
    expected = model.score_new(history)
    expected[train.of(8)] = -np.inf
    np.testing.assert_allclose(values, np.sort(expected)[::-1][:5], rtol=1e-5)
    both = model.recommend_new([history, history[:2]], n=5)[0]
    assert both[0].tolist() == plain.tolist()
    assert {r.interest for r in reasons} <= {one.number for one in model.interests_new(history)}


def test_similar_users_share_interests(model, world):
    truth = world.truth.user_interests
    hits = chance = 0.0
    for user in range(60):
        ids, values = model.similar_users(user, n=5)
        assert user not in ids
        assert (np.diff(values) <= 0).all()
        hits += (truth[ids, 0] == truth[user, 0]).mean() / 60
        chance += (truth[:, 0] == truth[user, 0]).mean() / 60
    assert hits > chance + 0.3


def test_people_without_a_history_are_answered(parts):
    train = parts.train.select(parts.train.rows != 5)
    model = DPCML(n_vectors=2, **{**SMALL, "epochs": 2}).fit(train)
    ids, _, reasons = model.recommend(5, n=3, mix=0.5, explain=True)
    assert len(ids) == 3
    assert all(reason.text.startswith("popular: ") for reason in reasons)
    assert [one.share for one in model.interests(5)] == [0, 0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
def test_nobody_and_somebody_who_knows_all_that_is_left(model, parts, mix):
    assert model.recommend([], mix=mix)[0].shape[0] == 0
    seen = parts.train.item_ids[parts.train.of(3)]
    ids, scores, reasons = model.recommend(3, items=seen, mix=mix, explain=True)
    assert (len(ids), len(scores), reasons) == (0, 0, [])
