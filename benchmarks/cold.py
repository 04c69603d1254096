"""Items that nobody likes yet: held-out items of a data set, placed by their titles and attributes.

A tenth of the items is held out for validation and a tenth for the test, with all their likes. The model learns the
other items; held-out ones are added to it and ranked for the users who like some of them. The ridge penalty and the
form of the content kNN are chosen on the validation items.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.intervals import bootstrap_means, interval
from dpcml.data.datasets import load_dataset
from dpcml.data.features import content_features
from dpcml.data.interactions import Interactions
from dpcml.models import Recommender
from dpcml.models.blend import Blend
from dpcml.retrieval.content import L2, ContentRidge, with_new_items
from dpcml.retrieval.request import UserBatch
from dpcml.storage import load, save
from dpcml.utils.arrays import BoolArray, FloatArray, IntArray
from dpcml.utils.packages import version

STRENGTHS = (1.0, 3.0, 10.0, 30.0)
POWERS = (0.0, 0.5, 1.0)  # of the sum of an item's similarities, by which its kNN score is divided
MOST_USERS = 2000
NDCG, RECALL, OF_ALL = METRICS = ("NDCG@10", "R@20", "R@20 among all items")


def bench_cold(
    data: str = "ml-1m", *, seed: int = 0, likes: Interactions | None = None, keep: Path | None = None, **settings: Any
) -> dict[str, Any]:
    """Rank held-out items that nobody in the training data likes, by several methods.

    Parameters
    ----------
    data
        A named data set with titles or attributes.
    seed
        Draws the held-out items and the users.
    likes
        The data, instead of reading it.
    keep
        Folder for the fitted model; one of the same training data that is there already is used.
    **settings
        Parameters of the blend that differ from its defaults.

    Returns
    -------
    dict
        ``methods``: per method and metric the mean over users and its 95 % interval, on the test items; the last metric
        ranks them among all items that the user does not know, the others among themselves. ``trials``: NDCG@10 on the
        validation items, and ``chosen``, the best settings by it. ``parameters``: those of the fitted blend.

    Examples
    --------
    >>> from dpcml import planted
    >>> found = bench_cold(likes=planted(100, 120, seed=1).data, dim=8, epochs=2)
    >>> list(found["methods"])
    ['random', 'popularity by content', 'content kNN', 'dpcml', 'ease', 'rp3beta', 'ials', 'blend']
    """
    likes = load_dataset(data) if likes is None else likes
    rng = np.random.default_rng(seed)
    order = rng.permutation(np.flatnonzero(likes.per_item))
    tenth = len(order) // 10
    warm = np.setdiff1d(np.arange(likes.n_items), order[: 2 * tenth])
    train = Interactions.from_csr(likes.csr[:, warm], user_ids=likes.user_ids, items=likes.items.select(warm))
    valid, test = (_Case.draw(likes, train, np.sort(some), rng) for some in (order[:tenth], order[tenth : 2 * tenth]))
    with TemporaryDirectory() as temporary:
        folder = _fitted(train, Path(temporary) / "model" if keep is None else keep, seed, settings)
        parameters = load(folder).plain_params()
        trials = [_trial("content kNN", {"power": power}, valid, valid.knn(power)) for power in POWERS]
        for l2 in STRENGTHS:
            for name, model in _grown(folder, valid, l2).items():
                trials.append(_trial(name, {"l2": l2}, valid, valid.scores(model)))
        chosen: dict[str, Any] = {}
        for trial in sorted(trials, key=lambda trial: trial[NDCG]):
            chosen[trial["method"]] = trial["settings"]
        found = {
            "random": test.figures(rng.random(test.relevant.shape)),
            "popularity by content": test.figures(test.popularity()),
            "content kNN": test.figures(test.knn(chosen["content kNN"]["power"])),
        }
        for name, model in _grown(folder, test, L2).items():
            found[name] = test.figures(test.scores(model)) | {OF_ALL: test.recall_among_all(model)}
    return {
        "benchmark": "cold",
        "data": data,
        "items": train.n_items,
        "cold_items": tenth,
        "users": len(test.users),
        "seed": seed,
        "version": version(),
        "l2": L2,
        "settings": settings,
        "parameters": parameters,
        "trials": trials,
        "chosen": chosen,
        "methods": {name: {metric: _interval(v) for metric, v in values.items()} for name, values in found.items()},
    }


@dataclass(frozen=True, eq=False)
class _Case:
    """Held-out items and users who like some of them."""

    train: Interactions
    both: Interactions  # with the held-out items, which nobody likes
    columns: IntArray  # of the held-out items in ``both``
    users: IntArray  # rows
    relevant: BoolArray  # (users, held-out items)

    @classmethod
    def draw(cls, likes: Interactions, train: Interactions, items: IntArray, rng: np.random.Generator) -> _Case:
        """Draw some of the users who like one of the items; items that cannot be placed are left out."""
        both = with_new_items(train, likes.items.select(items))
        columns = both.items.find(likes.item_ids[items])
        liked = likes.csr[:, items[columns >= 0]].toarray() > 0
        users = np.sort(rng.permutation(np.flatnonzero(liked.any(axis=1)))[:MOST_USERS])
        return cls(train, both, columns[columns >= 0], users, liked[users])

    def scores(self, model: Recommender) -> FloatArray:
        return np.asarray(model.score(self.users)[:, self.columns])

    def knn(self, power: float) -> FloatArray:
        """Return the sum of the cosines of tf-idf features with the liked items, less for items that are like many."""
        features = content_features(self.both.items, self.both.per_item > 0)
        cosines = features[self.columns] @ features[: self.train.n_items].T
        weight = np.asarray(cosines.sum(axis=1)).ravel() ** power
        return np.asarray((self.train.csr[self.users] @ cosines.T).toarray() / np.maximum(weight, 1e-12))

    def popularity(self) -> FloatArray:
        """Return the logarithm of likes that the ridge regression predicts, the same for all users."""
        predicted = ContentRidge.of(self.both).extend(np.log1p(self.train.per_item)[:, None])
        return np.tile(predicted[self.columns].T, (len(self.users), 1))

    def figures(self, scores: FloatArray) -> dict[str, FloatArray]:
        """Return NDCG and recall of each user, for the held-out items among themselves."""
        best = np.argsort(-scores, axis=1, kind="stable")[:, :20]
        hits = np.take_along_axis(self.relevant, best, axis=1)
        counts = self.relevant.sum(axis=1)
        gains = 1 / np.log2(np.arange(2, 12))
        ideal = np.cumsum(gains)[np.minimum(counts, 10) - 1]
        shown = hits[:, :10]
        return {NDCG: shown @ gains[: shown.shape[1]] / ideal, RECALL: hits.sum(axis=1) / counts}

    def recall_among_all(self, model: Recommender) -> FloatArray:
        """Return the share of a user's held-out likes in a list of 20 from all items that the user does not know."""
        lists = model.top_items(UserBatch.known(model.check_fitted(), self.users), 20).items
        place = np.full(self.both.n_items, -1)
        place[self.columns] = np.arange(len(self.columns))
        at = place[lists]
        hits = np.take_along_axis(self.relevant, at, axis=1) & (at >= 0)
        return np.asarray(hits.sum(axis=1) / self.relevant.sum(axis=1))


def _fitted(train: Interactions, folder: Path, seed: int, settings: Mapping[str, Any]) -> Path:
    """Return the folder of a blend that was fitted as ``dpcml train`` does: settings by a split, then everything."""
    if folder.exists() and load(folder).check_fitted().content_hash == train.content_hash:
        return folder
    found = Blend(random_state=seed).set_params(**settings).fit(*train.split((0.9, 0.1), seed), progress=False)
    return save(found.settled().fit(train, progress=False), folder)


def _grown(folder: Path, case: _Case, l2: float) -> dict[str, Recommender]:
    """Return the blend and its members with the held-out items added."""
    model = load(folder)
    assert isinstance(model, Blend)
    model.add_items(case.both.items.select(case.columns), l2=l2)
    return {member.name: member for member in model.members_} | {"blend": model}


def _trial(name: str, settings: dict[str, Any], case: _Case, scores: FloatArray) -> dict[str, Any]:
    return {"method": name, "settings": settings, NDCG: float(case.figures(scores)[NDCG].mean())}


def _interval(values: FloatArray) -> dict[str, float]:
    low, high = interval(bootstrap_means({"": [values]}, np.random.default_rng(0))[""])
    return {"mean": float(values.mean()), "low": low, "high": high}
