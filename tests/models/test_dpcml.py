import numpy as np
import pytest
from scipy import sparse

from dpcml import CML, DPCML, GFJA, Interactions, evaluate
from dpcml.models.presets import PRESETS
from dpcml.utils.errors import DataError, ParameterError

SMALL = {
    "n_vectors": 3,
    "dim": 8,
    "n_candidates": 4,
    "batch_size": 32,
    "epochs": 25,
    "learning_rate": 0.01,
    "patience": None,
    "schedule": "constant",
}
PLAIN = {"pull": 0.0, "popularity": 0.0, "average": 0.0, "init": "spectral"}  # the vectors of the last epoch
ONE = {name: value for name, value in SMALL.items() if name != "n_vectors"}


@pytest.fixture(scope="module")
def parts(blocks):
    return blocks.split((0.6, 0.2, 0.2), 0)


def diversity(vectors):
    """Return half the mean squared distance of each user's vectors."""
    pairs = ((vectors[:, :, None] - vectors[:, None]) ** 2).sum(axis=3)
    n = vectors.shape[1]
    return pairs.sum(axis=(1, 2)) / (2 * n * (n - 1))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"diversity": (0.5, 0.1)}, r"diversity=\(0\.5, 0\.1\): the lower bound must not exceed the upper one"),
        ({"diversity": (-0.1, 0.1)}, "bounds are numbers of at least 0, or None"),
        ({"diversity": (0.1, np.nan)}, "bounds are numbers of at least 0, or None"),
        ({"diversity": 0.1}, r"diversity=0\.1: pass two bounds"),
        ({"diversity": (0.1,)}, "pass two bounds"),
        ({"diversity_weight": -1}, "diversity_weight=-1: must be a finite number of at least 0"),
        ({"n_vectors": 0}, "n_vectors=0: must be a whole number of at least 1"),
        ({"n_vectors": 2.5}, r"n_vectors=2\.5: must be a whole number"),
        ({"n_vectors": "adaptif"}, "n_vectors='adaptif': did you mean 'adaptive'?"),
        ({"n_vectors": True}, "n_vectors=True: must be a whole number of at least 1"),
        ({"pull": -0.1}, r"pull=-0\.1: must be a finite number of at least 0"),
        ({"pull": np.nan}, "pull=nan: must be a finite number of at least 0"),
        ({"pull": "much"}, "pull='much': must be a finite number of at least 0"),
        ({"popularity": -1}, "popularity=-1: must be a finite number of at least 0"),
        ({"popularity": np.inf}, "popularity=inf: must be a finite number of at least 0"),
        ({"average": 1.0}, r"average=1\.0: must be from 0 up to, but not including, 1"),
        ({"average": -0.5}, r"average=-0\.5: must be from 0 up to, but not including, 1"),
        ({"average": np.nan}, "average=nan: must be from 0 up to, but not including, 1"),
        ({"average": None}, "average=None: must be from 0 up to, but not including, 1"),
        ({"dim": 0}, "dim=0: must be a whole number of at least 1"),
        ({"dim": True}, "dim=True"),
        ({"n_candidates": 0}, "n_candidates=0"),
        ({"margin": 0}, "margin=0: must be a finite number above 0"),
        ({"margin": -1.0}, r"margin=-1\.0: must be a finite number above 0"),
        ({"margin": np.inf}, "margin=inf"),
        ({"diversity": (0.1, np.inf)}, "at least 0, or None for no bound"),
        ({"learning_rate": 0.0}, r"learning_rate=0\.0"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"epochs": 0}, "epochs=0"),
        ({"patience": 0}, "patience=0"),
        ({"random_state": -1}, "random_state=-1"),
        ({"n_threads": 0}, "n_threads=0"),
        ({"popularity_exponent": np.nan}, "popularity_exponent=nan"),
        ({"init": "spectrl"}, "init='spectrl': did you mean 'spectral'?"),
        ({"negatives": "unifrom"}, "negatives='unifrom': did you mean 'uniform'?"),
        ({"schedule": "cosin"}, "schedule='cosin': did you mean 'cosine'?"),
        ({"optimizer": "adams"}, "optimizer='adams': did you mean 'adam'?"),
        ({"projection": "cube"}, "projection='cube': known: ball, sphere"),
        ({"diversity_per": "users"}, "diversity_per='users': did you mean 'user'?"),
    ],
)
def test_wrong_parameters_are_named_with_the_rule(wrong, message):
    with pytest.raises(ParameterError, match=message):
        DPCML(**wrong)
    with pytest.raises(ParameterError, match=message):
        DPCML().set_params(**wrong)


def test_unknown_metric_is_named_with_the_nearest(parts):
    with pytest.raises(ParameterError, match=r"metric='NDCGG@3': did you mean 'NDCG@3'\?"):
        DPCML(**{**SMALL, "metric": "NDCGG@3", "epochs": 1}).fit(parts.train, parts.valid)


def test_unknown_preset_is_named_with_the_nearest():
    with pytest.raises(ParameterError, match=r"unknown preset 'dpcml3': did you mean 'dpcml"):
        DPCML.preset("dpcml3")
    with pytest.raises(ParameterError, match=r"DPCML has no parameter 'marginn': did you mean 'margin'"):
        DPCML.preset("dpcml2", marginn=1)


def test_data_that_cannot_be_learned_from(blocks):
    with pytest.raises(DataError, match="training needs at least one positive"):
        DPCML(**SMALL).fit(sparse.csr_array((3, 3)))
    likes = np.eye(4)
    likes[2] = 1
    everything = Interactions.from_csr(likes, user_ids=["ann", "bob", "eve", "joe"])
    with pytest.raises(
        DataError, match="user eve likes all 4 items: there is no negative to learn from; drop the user"
    ):
        DPCML(**SMALL).fit(everything)


def test_presets_have_the_settings_of_the_paper():
    expected = {
        "dpcml1": (DPCML, "uniform", (0.1, 0.35)),
        "dpcml2": (DPCML, "hard", (0.05, 0.25)),
        "unis": (CML, "uniform", None),
        "pops": (CML, "popularity", None),
        "2sts": (CML, "two-stage", None),
        "hars": (CML, "hard", None),
        "gfja": (GFJA, "hard", None),
        "gfja+dcrs": (GFJA, "hard", (0.05, 0.25)),
    }
    assert set(PRESETS) == {*expected, "dpcml", "m2f+dcrs"}
    for name, (kind, negatives, bounds) in expected.items():
        model = DPCML.preset(name)
        assert type(model) is kind
        assert model.negatives == negatives
        assert (model.n_candidates, model.init, model.epochs, model.dim) == (10, "random", 100, 100)
        assert (model.batch_size, model.margin, model.optimizer) == (256, 1.0, "adam")
        assert model.n_vectors == (1 if kind is CML else 5)
        assert (model.pull, model.popularity, model.average) == (0, 0, 0)
        if bounds is not None:
            assert (model.diversity, model.diversity_weight) == (bounds, 10)
        elif kind is GFJA:
            assert model.diversity_weight == 0
    assert DPCML.preset("dpcml2", epochs=3, margin=1.5).get_params()["margin"] == 1.5
    assert DPCML.preset("dpcml").get_params() == DPCML().get_params()


@pytest.mark.parametrize("projection", ["sphere", "ball"])
def test_shapes_and_norms(parts, projection):
    for popularity in (0.0, 0.05):
        model = DPCML(**SMALL, projection=projection, popularity=popularity).fit(parts.train)
        assert model.user_vectors_.shape == (60, 3, 8)
        assert model.item_vectors_.shape == (40, 8)
        trained = model.trained_items()
        assert trained.shape == (40, 8 - (popularity > 0))
        users, items = np.linalg.norm(model.user_vectors_, axis=2), np.linalg.norm(trained, axis=1)
        assert max(users.max(), items.max()) < 1 + 1e-5
        assert (users > 1 - 1e-5).all() == (projection == "sphere")


def test_score_is_minus_the_squared_distance_to_the_nearest_vector(parts):
    model = DPCML(**SMALL).fit(parts.train)
    U, V = model.user_vectors_.astype(float), model.item_vectors_.astype(float)
    expected = -((U[:, :, None] - V) ** 2).sum(axis=3).min(axis=1)
    np.testing.assert_allclose(model.score(np.arange(60)), expected, atol=1e-5)


def test_cml_is_dpcml_with_one_vector(parts):
    cml = CML(**ONE).fit(parts.train)
    one = DPCML(**{**SMALL, "n_vectors": 1}, **PLAIN, diversity_weight=10.0).fit(parts.train)
    assert cml.user_vectors_.shape == (60, 1, 8)
    assert (cml.user_vectors_ == one.user_vectors_).all()
    assert (cml.item_vectors_ == one.item_vectors_).all()
    with pytest.raises(ParameterError, match="n_vectors=2: CML has one vector per user; use DPCML for more"):
        CML(n_vectors=2)


@pytest.mark.parametrize("weight", [0.0, 10.0])
def test_gfja_lives_on_the_sphere_and_scores_by_inner_products(parts, weight):
    model = GFJA(**SMALL, diversity_weight=weight).fit(parts.train)
    U, V = model.user_vectors_.astype(float), model.item_vectors_.astype(float)
    np.testing.assert_allclose(np.linalg.norm(U, axis=2), 1, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(V, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(model.score(np.arange(60)), (U @ V.T).max(axis=1), atol=1e-5)
    within = (diversity(U) > 0.04) & (diversity(U) < 0.26)
    assert within.all() == (weight > 0)


def test_gfja_trains_the_hinge_of_inner_products(parts):
    """Its loss is twice that of inner products: the margin in squared distances is doubled."""
    model = GFJA(
        **{**SMALL, "margin": 0.4, "epochs": 1, "learning_rate": 1e-9, "n_candidates": 30}, negatives="uniform"
    )
    engine = model.make_engine(parts.train)
    assert engine.config.margin == pytest.approx(0.8)
    assert engine.config.items_on_sphere
    assert engine.config.users_on_sphere


@pytest.mark.parametrize(
    ("start", "bounds"),
    [("spectral", (0.05, 0.1)), ("spectral", (0.3, 0.6)), ("spectral", (None, 0.1)), ("spectral", (0.6, None)),
     ("random", (0.05, 0.1)), ("random", (0.3, 0.6))],
)  # fmt: skip
def test_dcrs_keeps_diversity_within_its_bounds(parts, bounds, start):
    """Without it the vectors scatter: to about 0.2 to 0.8 from a spectral start, 0.6 to 1.4 from a random one."""
    low, high = bounds[0] or 0.0, bounds[1] or np.inf
    settings = {**SMALL, **PLAIN, "init": start}
    free = diversity(DPCML(**settings, diversity_weight=0.0).fit(parts.train).user_vectors_)
    kept = diversity(DPCML(**settings, diversity=bounds).fit(parts.train).user_vectors_)
    assert ((free < low) | (free > high)).mean() > 0.2
    assert ((kept > low - 0.02) & (kept < high + 0.02)).mean() > 0.95


def test_dcrs_keeps_vectors_from_collapsing(parts):
    """Uniform negatives and a tiny margin pull nearly nothing apart: only the lower bound does."""
    settings = {**SMALL, **PLAIN, "margin": 0.01}
    free = diversity(DPCML(**settings, diversity_weight=0.0).fit(parts.train).user_vectors_)
    kept = diversity(DPCML(**settings, diversity=(0.3, None)).fit(parts.train).user_vectors_)
    assert np.median(free) < 0.1
    assert kept.min() > 0.28


def test_bounds_per_pair_bind_every_pair(parts):
    model = DPCML(**SMALL, diversity=(0.2, 0.4), diversity_per="pair").fit(parts.train)
    U = model.user_vectors_
    for a, b in ((0, 1), (0, 2), (1, 2)):
        half = ((U[:, a] - U[:, b]) ** 2).sum(axis=1) / 2
        assert half.min() > 0.15
        assert half.max() < 0.45


@pytest.mark.parametrize("average", [0.0, 0.8])
def test_fit_keeps_the_state_that_is_best_on_the_validation_part(parts, average):
    settings = {**SMALL, "validate_every": 3, "epochs": 24, "learning_rate": 0.03, "metric": "NDCG@3"}
    settings |= {"popularity": 0.0, "average": average}  # validation during training is without popularity
    model = DPCML(**settings).fit(parts.train, parts.valid)
    looks = {epoch.number: epoch.validation for epoch in model.history_.epochs if epoch.validation is not None}
    best = model.history_.best.number
    assert list(looks) == list(range(3, 25, 3))
    assert looks[best] == max(looks.values())
    assert evaluate(model, parts.train, parts.valid, protocol="released", k=3).metrics["NDCG@3"] == pytest.approx(
        looks[best]
    )
    stopped = DPCML(**settings).fit(parts.train, callbacks=[lambda history: len(history.epochs) == best])
    assert (stopped.user_vectors_ == model.user_vectors_).all()


def test_patience_ends_training(parts):
    model = DPCML(**{**SMALL, "validate_every": 1, "epochs": 300, "patience": 2}).fit(parts.train, parts.valid)
    assert len(model.history_.epochs) == model.history_.best.number + 2 < 300


def test_without_a_validation_part_the_last_state_stays(parts):
    model = DPCML(**{**SMALL, "patience": 1}).fit(parts.train)
    assert len(model.history_.epochs) == 25
    assert all(epoch.validation is None for epoch in model.history_.epochs)


def test_spectral_start_learns_in_fewer_epochs(parts):
    found = {}
    for start in ("random", "spectral"):
        settings = {**SMALL, **PLAIN, "epochs": 2, "learning_rate": 0.003, "init": start}
        model = DPCML(**settings).fit(parts.train)
        found[start] = evaluate(model, parts.train, parts.test, k=3).metrics["P@3"]
    assert found["spectral"] > found["random"] + 0.1


def test_seed_and_threads(parts):
    one = DPCML(**SMALL, n_threads=1).fit(parts.train)
    two = DPCML(**SMALL, n_threads=2).fit(parts.train)
    other = DPCML(**SMALL, random_state=1).fit(parts.train)
    assert (one.user_vectors_ == two.user_vectors_).all()
    assert (one.user_vectors_ != other.user_vectors_).any()


@pytest.mark.parametrize("n_vectors", [3, "adaptive"])
def test_same_bits_on_any_number_of_threads_with_everything_switched_on(parts, monkeypatch, n_vectors):
    settings = {**SMALL, "n_vectors": n_vectors, "epochs": 4, "init": "clusters", "negatives": "partial-auc"}
    settings |= {"pull": 0.5, "average": 0.8, "popularity": None}

    def bits(threads):
        monkeypatch.setenv("DPCML_THREADS", str(threads))
        model = DPCML(**settings, n_threads=threads).fit(parts.train, parts.valid)
        return [array.tobytes() for array in (*model.to_arrays().values(), model.fold_in([100, 103, 125]))]

    alone = bits(1)
    assert all(bits(threads) == alone for threads in (2, 3, 5))


def test_partial_auc_learns_and_takes_more_candidates_by_default(parts):
    settings = {**SMALL, "n_candidates": None, "negatives": "partial-auc"}
    config = DPCML(**settings).train_config(parts.train)
    assert (config.n_candidates, config.n_negatives) == (30, 3)
    assert config.term_weight == pytest.approx(1 / 3)
    assert DPCML(**{**settings, "negatives": "hard"}).train_config(parts.train).n_candidates == 10
    assert DPCML(**{**settings, "n_candidates": 7}).train_config(parts.train).n_negatives == 2
    found = evaluate(DPCML(**settings).fit(parts.train), parts.train, parts.test, k=3).metrics["P@3"]
    other = DPCML(**{**settings, "negatives": "uniform", "epochs": 1}).fit(parts.train)
    assert found > evaluate(other, parts.train, parts.test, k=3).metrics["P@3"]


def test_fitting_again_begins_anew(parts):
    model = DPCML(**SMALL).fit(parts.train)
    before = model.user_vectors_.copy()
    assert (model.fit(parts.train).user_vectors_ == before).all()


@pytest.mark.parametrize(
    ("valid", "said"),
    [
        (np.zeros((30, 20)), "no user has a validation positive"),
        (np.eye(30, 20), "parts must not overlap"),
        (np.eye(29, 20, k=1), "rows and columns agree"),
    ],
)
def test_a_useless_validation_part_is_told_before_anything_is_trained(valid, said):
    train = np.eye(30, 20) + np.eye(30, 20, k=-10)
    epochs = []
    with pytest.raises(DataError, match=said):
        DPCML(dim=4, epochs=3, n_candidates=2).fit(train, valid, callbacks=[epochs.append])
    assert not epochs
