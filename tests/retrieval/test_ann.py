import numpy as np
import pytest

from benchmarks.recommend import clustered
from dpcml import DPCML
from dpcml.data.synthetic import planted
from dpcml.retrieval.ann import AnnIndex, best_with_index, by_neighbourhood, index_of
from dpcml.retrieval.exact import Catalogue, best_by_distance, nothing_seen, seen_of
from dpcml.retrieval.lists import candidate_mask
from dpcml.utils.errors import DataError, RecoveryWarning

pytest.importorskip("usearch")


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    items = clustered(4000, 16, rng)
    users = items[rng.integers(4000, size=(30, 3))] + rng.standard_normal((30, 3, 16), dtype=np.float32) / 20
    near = best_by_distance(users, Catalogue.of(items), 60, nothing_seen(30))[0]
    seen = np.arange(31) * 30, np.sort(near[:, ::2], axis=1).astype(np.int32).ravel()
    return users, items, seen


@pytest.mark.parametrize("n_vectors", [1, 3])
def test_it_finds_nearly_all_that_exact_search_finds(world, n_vectors):
    users, items, seen = world
    users = users[:, :n_vectors]
    truth, scores = best_by_distance(users, Catalogue.of(items), 10, seen)
    best, found = AnnIndex(items).build(1).best(users, 10, seen)
    recall = np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(best, truth, strict=True)])
    assert recall > 0.97
    same = best == truth
    np.testing.assert_allclose(found[same], scores[same], atol=1e-5)
    assert (np.diff(found, axis=1) <= 0).all()
    for u in range(30):
        assert not set(best[u].tolist()) & set(seen[1][seen[0][u] : seen[0][u + 1]].tolist())


def test_items_are_added_in_an_order_that_keeps_clusters_together():
    rng = np.random.default_rng(0)
    centres = 10 * rng.standard_normal((4, 8))
    cluster = rng.integers(4, size=400)
    items = (centres[cluster] + rng.standard_normal((400, 8))).astype(np.float32)
    order = by_neighbourhood(items)
    assert sorted(order.tolist()) == list(range(400))
    assert np.count_nonzero(np.diff(cluster[order])) < 60, "about 20 groups; 300 changes at random"


def test_saved_and_loaded_it_finds_the_same(world, tmp_path, monkeypatch):
    users, items, seen = world
    monkeypatch.setenv("DPCML_CACHE", str(tmp_path))
    assert index_of(items, build=False) is None
    first = index_of(items).best(users, 5, seen)[0]
    assert len(list((tmp_path / "indexes").iterdir())) == 1
    monkeypatch.setattr(AnnIndex, "build", lambda self: pytest.fail("built again"))
    assert (index_of(items, build=False).best(users, 5, seen)[0] == first).all()


def damaged(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 16
    path.write_bytes(content)


def test_a_damaged_index_is_rebuilt_or_search_is_exact(world, tmp_path, monkeypatch):
    """Finding 3: a flipped bit ended the process, or never came back."""
    users, items, seen = world
    monkeypatch.setenv("DPCML_CACHE", str(tmp_path))
    first = index_of(items[:300]).best(users, 5, seen)[0]
    (path,) = (tmp_path / "indexes").iterdir()
    whole = path.read_bytes()
    for place in (*np.random.default_rng(0).integers(len(whole), size=40).tolist(), 0, -1, -33, -70):
        damaged(path, place)
        with pytest.warns(RecoveryWarning, match="search is exact"):
            assert index_of(items[:300], build=False) is None
        path.write_bytes(whole)
    for cut in (b"", whole[:-1], whole[:50], b"x" * 500):
        path.write_bytes(cut)
        with pytest.warns(RecoveryWarning, match="a new one is built"):
            assert (index_of(items[:300]).best(users, 5, seen)[0] == first).all()
        assert (index_of(items[:300], build=False).best(users, 5, seen)[0] == first).all(), "it took the place"


def test_an_index_of_other_vectors_is_refused(world, tmp_path, monkeypatch):
    _, items, _ = world
    monkeypatch.setenv("DPCML_CACHE", str(tmp_path))
    index_of(items[:200])
    (path,) = (tmp_path / "indexes").iterdir()
    with pytest.raises(DataError, match="an index of other vectors or settings"):
        AnnIndex(items[200:400]).load(path)
    with pytest.raises(DataError, match="cannot be read"):
        AnnIndex(items[200:400]).load(tmp_path / "nowhere")


def test_a_model_with_a_damaged_index_gives_the_exact_lists(tmp_path, monkeypatch):
    monkeypatch.setenv("DPCML_CACHE", str(tmp_path))
    data = planted(120, 400, seed=1).data
    model = DPCML(n_vectors=3, dim=8, epochs=1, n_candidates=4).fit(data)
    exact = model.recommend(np.arange(20), 5)
    monkeypatch.setattr(DPCML, "ann_from", 300)
    index_of(model.item_vectors_)
    (path,) = (tmp_path / "indexes").iterdir()
    damaged(path, 1000)
    with pytest.warns(RecoveryWarning, match="damaged index"):
        assert model.recommend(np.arange(20), 5)[0].tolist() == exact[0].tolist()


def test_an_index_that_cannot_be_kept_serves_all_the_same(world, tmp_path, monkeypatch):
    users, items, seen = world
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("DPCML_CACHE", str(tmp_path / "file"))
    with pytest.warns(RecoveryWarning, match="not kept for the next start"):
        assert index_of(items[:200]).best(users, 5, seen)[0].shape == (30, 5)


def test_who_has_seen_nearly_everything_is_served_exactly(world):
    users, items, _ = world
    seen = np.array([0, 3999]), np.delete(np.arange(4000), 17).astype(np.int32)
    best, _ = best_with_index(AnnIndex(items[:4000]).build(1), users[:1], Catalogue.of(items[:4000]), 2, seen)
    assert best.tolist() == [[17, -1]]


def best_of(model, user, items):
    """Return candidates by score, without what the user likes."""
    data = model.train_
    scores = model.score([user])[0]
    columns = np.setdiff1d(data.item_columns(items), data.of(user))
    return data.item_ids[columns[np.argsort(-scores[columns], kind="stable")]].tolist()


@pytest.mark.parametrize("share", [0.9, 0.5, 0.1])
def test_filtered_search_finds_candidates_only_and_nearly_the_best(world, share):
    users, items, seen = world
    allowed = np.random.default_rng(1).random(len(items)) < share
    truth, _ = best_by_distance(users, Catalogue.of(items).only(np.flatnonzero(allowed)), 10, seen)
    index = AnnIndex(items).build(1)
    best, _ = best_with_index(index, users, Catalogue.of(items), 10, seen, allowed)
    assert allowed[best].all()
    assert np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(best, truth, strict=True)]) > 0.95
    for u in range(30):
        assert not set(best[u].tolist()) & set(seen[1][seen[0][u] : seen[0][u + 1]].tolist())


def test_candidates_far_from_a_vector_are_found_exactly(world):
    """One vector has candidates around it and the other none: what is near the other must not be missed."""
    users, items, _ = world
    near = best_by_distance(users[:1, 1:2], Catalogue.of(items), 2000, nothing_seen(1))[0][0]
    allowed = np.ones(len(items), dtype=bool)
    allowed[near] = False
    index = AnnIndex(items).build(1)
    assert (index.best(users[:1], 10, nothing_seen(1), allowed)[0] == -1).all(), "says that it found too few"
    best, scores = best_with_index(index, users[:1], Catalogue.of(items), 10, nothing_seen(1), allowed)
    truth, expected = best_by_distance(
        users[:1], Catalogue.of(items).only(np.flatnonzero(allowed)), 10, nothing_seen(1)
    )
    assert best.tolist() == truth.tolist()
    np.testing.assert_allclose(scores, expected)


def test_a_model_uses_an_index_once_there_is_one(tmp_path, monkeypatch):
    monkeypatch.setenv("DPCML_CACHE", str(tmp_path))
    data = planted(120, 400, seed=1).data
    model = DPCML(n_vectors=3, dim=8, epochs=3, n_candidates=4).fit(data)
    exact = model.recommend(np.arange(20), 5)
    assert not model.prepare_index(), "the catalogue is small"
    monkeypatch.setattr(DPCML, "ann_from", 300)
    asked = []
    search = AnnIndex.best
    monkeypatch.setattr(AnnIndex, "best", lambda self, *given: asked.append(1) or search(self, *given))
    assert model.recommend(np.arange(20), 5)[0].tolist() == exact[0].tolist()
    assert not asked, "nobody has made one"
    assert model.prepare_index()
    ids, _ = model.recommend(np.arange(20), 5)
    assert asked
    assert np.mean([len(set(a) & set(b)) / 5 for a, b in zip(ids.tolist(), exact[0].tolist(), strict=True)]) > 0.9
    asked.clear()
    category = str(data.items.attributes.names[0])
    few = data.item_ids[:15]
    assert model.recommend(3, 5, items=few)[0].tolist() == best_of(model, 3, few)[:5]
    model.recommend(3, 10**9)
    assert not asked, "few candidates and long lists are exact"
    for options in ({"where": {"category": category}}, {"exclude": exact[0][3]}):
        ids, _ = model.recommend(3, 5, **options)
        allowed = candidate_mask(data, None, options.get("where"), options.get("exclude"), "error")
        assert len(set(ids.tolist()) & set(best_of(model, 3, data.item_ids[allowed])[:5])) >= 4
    assert asked
    likes = data.csr[[3]]
    assert not set(model.recommend(3, 5)[0].tolist()) & set(seen_of(likes)[1].tolist())
