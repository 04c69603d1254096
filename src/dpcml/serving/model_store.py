"""The models that a server holds, and how it replaces them."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from dpcml.models import Recommender
from dpcml.models.multi_interest import MultiInterest
from dpcml.retrieval.projection import ItemMap, project_items, takes_long
from dpcml.retrieval.request import UserBatch
from dpcml.serving.errors import APIError, to_json
from dpcml.serving.monitoring import log_event
from dpcml.serving.search import TextSearch
from dpcml.storage import load_with_card
from dpcml.utils.arrays import FloatArray, IntArray, every_kth
from dpcml.utils.errors import DpcmlError

EXAMPLE_LIKES = 0.5, 0.8  # quantiles of the number of likes of the user that the page opens on
EXAMPLES = 100  # users among whom it is chosen
CACHED_ITEMS = 20_000  # items whose description is kept in memory
CACHED_USERS = 100_000  # users whose row is kept in memory
MAX_JSON_INT = 2**53  # larger integers are rounded by JSON readers that use floating point numbers


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model in memory, with what the server computes from it once.

    Nothing in it refers back to it: a reload frees the old model with its last request, without a garbage collection.

    Parameters
    ----------
    model
        The fitted model.
    card
        The description in its folder: class, parameters, checksums.
    capabilities
        For each kind of request, whether the model can answer it.
    loaded
        When it was loaded, in UTC.

    Examples
    --------
    >>> import tempfile
    >>> from dpcml import ItemKNN, save
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = save(ItemKNN(k=2).fit(np.kron(np.eye(2), np.ones((3, 4)))), Path(place) / "knn")
    ...     loaded = LoadedModel.load(folder)
    >>> loaded.capabilities["interests"], loaded.item_search.search("3", 1)
    (False, [3])
    """

    model: Recommender
    card: dict[str, Any]
    capabilities: dict[str, bool]
    loaded: str

    @classmethod
    def load(cls, directory: str | Path, index: bool = False) -> LoadedModel:
        """Load a model directory and make one request of each kind, which compiles the kernels.

        Parameters
        ----------
        directory
            A directory that `dpcml.save` wrote. It is read into memory: overwriting its files later does no harm.
        index
            Build an approximate index of a large catalogue, unless there is one in the cache folder.
        """
        model, card = load_with_card(directory, mapped=False)
        if index and isinstance(model, MultiInterest):
            model.prepare_index()
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(model, card, _capabilities(model), now)

    @cached_property
    def fingerprint(self) -> str:
        """Start of a checksum of model, data and titles: equal models have equal fingerprints."""
        content = [self.card[part] for part in ("model", "parameters", "files")]
        return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]

    @cached_property
    def item(self) -> Callable[[int], dict[str, Any]]:
        """Returns the id, title and categories of the item with an internal index."""
        table = self.model.train_.items

        @lru_cache(maxsize=CACHED_ITEMS)
        def describe(column: int) -> dict[str, Any]:
            categories = [] if table.attributes is None else table.attributes.of(column)
            return {"id": json_id(table.ids[column]), "title": table.title(column), "categories": categories}

        return describe

    @cached_property
    def reference(self) -> Callable[[int | str], dict[str, Any]]:
        """Returns the id and title of the item with an external id."""
        train, describe = self.model.train_, self.item

        @lru_cache(maxsize=CACHED_ITEMS)
        def refer(item: int | str) -> dict[str, Any]:
            found = describe(int(train.item_columns([item])[0]))
            return {"id": found["id"], "title": found["title"]}

        return refer

    @cached_property
    def item_json(self) -> Callable[[int], bytes]:
        """Returns the start of the JSON of a recommended item; the score follows."""
        describe = self.item

        @lru_cache(maxsize=CACHED_ITEMS)
        def start(column: int) -> bytes:
            return to_json(describe(column))[:-1] + b',"score":'

        return start

    @cached_property
    def user_row(self) -> Callable[[int | str], int]:
        """Returns the row of a user by external id."""
        train = self.model.train_

        @lru_cache(maxsize=CACHED_USERS, typed=True)
        def row(user: int | str) -> int:
            return int(train.user_rows([user])[0])

        return row

    @cached_property
    def popular(self) -> IntArray:
        """Positions of all items, the most popular first."""
        return np.argsort(-self.model.train_.per_item, kind="stable")

    @cached_property
    def example(self) -> int | str:
        """A user to begin with: of some whose history is neither short nor long, the one with the evenest interests."""
        train, known = self.model.train_, self.model.multi_interest
        low, high = np.quantile(train.per_user[train.per_user > 0], EXAMPLE_LIKES, method="nearest")
        rows = every_kth(np.flatnonzero((train.per_user >= low) & (train.per_user <= high)), EXAMPLES)
        if known is None:
            return json_id(train.user_ids[rows[0]])
        shares = np.stack([one.shares for one in known.batch_profiles(UserBatch.known(train, rows))])
        spread = -(shares * np.log(np.maximum(shares, 1e-9))).sum(axis=1)  # the entropy
        return json_id(train.user_ids[rows[int(spread.argmax())]])

    @cached_property
    def item_search(self) -> TextSearch:
        """Search of items by id or title."""
        train = self.model.train_
        return TextSearch(train.item_ids, train.items.titles, train.per_item)

    @cached_property
    def user_search(self) -> TextSearch:
        """Search of users by id."""
        train = self.model.train_
        return TextSearch(train.user_ids, None, train.per_user)

    @cached_property
    def drawn_map(self) -> Future[ItemMap]:
        """The most popular items in two dimensions, which a thread of its own draws: no list waits for it."""
        found: Future[ItemMap] = Future()

        def draw() -> None:
            try:
                found.set_result(project_items(self.model.train_, self._item_vectors))
            except Exception as error:
                found.set_exception(error)

        threading.Thread(target=draw, name="dpcml-map", daemon=True).start()
        return found

    @property
    def item_map(self) -> ItemMap:
        """The map; it waits until it is drawn."""
        return self.drawn_map.result()

    def places(self, vectors: FloatArray) -> FloatArray | None:
        """Return the places of vectors on the map; None without item vectors, or while it takes long to draw it."""
        vectors_of_items = self._item_vectors
        if vectors_of_items is None or (takes_long(len(vectors_of_items)) and not self.drawn_map.done()):
            return None
        return self.item_map.place(vectors)

    @property
    def _item_vectors(self) -> FloatArray | None:
        return getattr(self.model, "item_vectors_", None)


def json_id(one: Any) -> int | str:
    """Return an external id for JSON: integers up to 2^53 as numbers, all other ids as strings.

    Examples
    --------
    >>> json_id(np.int64(7)), json_id("ann"), json_id(2**60)
    (7, 'ann', '1152921504606846976')
    """
    if isinstance(one, (int, np.integer)) and abs(int(one)) <= MAX_JSON_INT:
        return int(one)
    return str(one)


class ModelStore:
    """The served models by name: ``main``, and ``compare`` if there is a second one.

    A reload replaces all models in one assignment; requests in progress keep the model that they started with.

    Parameters
    ----------
    directories
        Model directory for each name.
    on_reload
        Called with ``done`` or ``refused`` after every reload.
    index
        As for `LoadedModel.load`.
    """

    def __init__(
        self,
        directories: dict[str, Path],
        on_reload: Callable[[str], None] = lambda outcome: None,
        index: bool = False,
    ) -> None:
        self._directories, self._on_reload, self._index = directories, on_reload, index
        self._models = self._load()
        self._loading = threading.Lock()

    def _load(self) -> dict[str, LoadedModel]:
        return {name: LoadedModel.load(directory, self._index) for name, directory in self._directories.items()}

    def get(self, name: str) -> LoadedModel:
        """Return a model by name; an unknown name raises `APIError` 404."""
        if name not in self._models:
            raise APIError(
                404, "unknown_model", f"there is no model {name!r}: served: {', '.join(self._models)}",
                "start the server with --compare DIR to serve a second model",
            )  # fmt: skip
        return self._models[name]

    def all(self) -> dict[str, LoadedModel]:
        """Return all models by name."""
        return self._models

    def fingerprints(self) -> dict[str, str]:
        """Return the fingerprint of each model by name."""
        return {name: loaded.fingerprint for name, loaded in self._models.items()}

    def reload(self) -> None:
        """Load all directories again; if one fails, keep all old models and raise `APIError` 409."""
        with self._loading:
            try:
                new = self._load()
            except Exception as error:
                self._on_reload("refused")
                reason = str(error) if isinstance(error, DpcmlError) else repr(error)
                log_event("reload refused", logging.ERROR, reason=reason)
                raise APIError(
                    409, "reload_refused", reason, "the old model is still served: repair the folder, then reload again"
                ) from None
            self._models = new
            self._on_reload("done")
            log_event("reloaded", models=self.fingerprints())


def _capabilities(model: Recommender) -> dict[str, bool]:
    """Make one request of each kind; a model raises an error for what it cannot do."""
    train = model.train_
    item, user = train.item_ids.tolist()[0], train.user_ids.tolist()[0]
    requests: dict[str, Callable[[], Any]] = {
        "recommend": lambda: model.recommend(user, n=1, explain=True),
        "recommend_new": lambda: model.recommend_new([item], n=1),
        "similar_items": lambda: model.similar_items(item, n=1),
        "similar_users": lambda: model.similar_users(user, n=1),
    }
    known = model.multi_interest
    if known is not None:
        requests["interests"] = lambda: known.interests(user)
    found = dict.fromkeys((*requests, "interests"), False)
    for name, request in requests.items():
        with suppress(DpcmlError):
            request()
            found[name] = True
    return found
