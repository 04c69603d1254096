"""The models that a server holds, and how one takes the place of another."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
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
from dpcml.projection import ItemMap, item_map
from dpcml.serving.failures import Refused
from dpcml.serving.logs import say
from dpcml.serving.search import Finder
from dpcml.storage import load, read_card
from dpcml.utils.errors import DataError, DpcmlError

DESCRIBED = 20_000  # items whose description is kept
EXACT = 2**53  # integers up to it survive JSON readers that know floating point numbers only
ATTEMPTS = 2  # to load a folder that is replaced while it is read


@dataclass(frozen=True, eq=False)
class Served:
    """A model ready to answer: what was loaded, what it can do, and what is computed of it once.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from dpcml import ItemKNN, save
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = save(ItemKNN(k=2).fit(np.kron(np.eye(2), np.ones((3, 4)))), Path(place) / "knn")
    ...     served = Served.load(folder)
    >>> served.able["interests"], served.items.find("3", 1)
    (False, [3])
    """

    model: Recommender
    card: dict[str, Any]
    able: dict[str, bool]
    loaded: str

    @classmethod
    def load(cls, directory: str | Path, index: bool = False) -> Served:
        """Load a model directory into memory, and ask it everything once, so that its kernels are compiled.

        With ``index``, lists from a large catalogue come from an approximate index, which may be made first.
        """
        for attempt in range(ATTEMPTS):
            try:
                card = read_card(directory)
                model = load(directory, mapped=False)
                if read_card(directory) != card:
                    raise DataError(f"{directory}: is being replaced; try again when that is done")
                break
            except DataError:
                if attempt + 1 == ATTEMPTS:
                    raise
        if index and isinstance(model, MultiInterest):
            model.prepare_index()
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(model, card, _abilities(model), now)

    @property
    def mark(self) -> str:
        """A short name of exactly this model, its data and texts: the start of a checksum of all."""
        told = [self.card[part] for part in ("model", "parameters", "files")]
        return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]

    @cached_property
    def described(self) -> Callable[[int], dict[str, Any]]:
        """Tells of an item, by its position, what is sent of it: id, title, categories."""
        table = self.model.train_.items

        @lru_cache(maxsize=DESCRIBED)
        def describe(column: int) -> dict[str, Any]:
            categories = [] if table.attributes is None else table.attributes.of(column)
            return {"id": plain_id(table.ids[column]), "title": table.title(column), "categories": categories}

        return describe

    @cached_property
    def items(self) -> Finder:
        """Finds items by id or title."""
        train = self.model.train_
        return Finder(train.item_ids, train.items.titles, train.per_item)

    @cached_property
    def users(self) -> Finder:
        """Finds users by id."""
        train = self.model.train_
        return Finder(train.user_ids, None, train.per_user)

    @cached_property
    def map(self) -> ItemMap:
        """Items in two dimensions."""
        return item_map(self.model)


def plain_id(one: Any) -> int | str:
    """Return an id as JSON: a number that every reader keeps exactly, otherwise text; both are understood.

    Examples
    --------
    >>> plain_id(np.int64(7)), plain_id("ann"), plain_id(2**60)
    (7, 'ann', '1152921504606846976')
    """
    if isinstance(one, (int, np.integer)) and abs(int(one)) <= EXACT:
        return int(one)
    return str(one)


class Shelf:
    """The models of a server by name, ``main`` and perhaps ``compare``; requests keep the one that they began with.

    Parameters
    ----------
    directories
        Where each model is.
    on_reload
        Called with ``done`` or ``refused`` after every attempt to load them anew.
    index
        As for `Served.load`.
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

    def _load(self) -> dict[str, Served]:
        return {name: Served.load(directory, self._index) for name, directory in self._directories.items()}

    def get(self, name: str) -> Served:
        """Return a model by name."""
        if name not in self._models:
            raise Refused(
                404, "unknown_model", f"there is no model {name!r}: served: {', '.join(self._models)}",
                "start the server with --compare DIR to serve a second model",
            )  # fmt: skip
        return self._models[name]

    def all(self) -> dict[str, Served]:
        """Return all models by name."""
        return self._models

    def reload(self) -> dict[str, Served]:
        """Load all models anew and put them in place at once; where one cannot be loaded the old ones stay."""
        with self._loading:
            try:
                new = self._load()
            except Exception as error:
                self._on_reload("refused")
                reason = str(error) if isinstance(error, DpcmlError) else repr(error)
                say("reload refused", logging.ERROR, reason=reason)
                raise Refused(
                    409, "reload_refused", reason, "the model of before is still served: repair the folder, reload"
                ) from None
            self._models = new  # one assignment: a request sees the old models or the new ones
            self._on_reload("done")
            say("reloaded", models={name: one.mark for name, one in new.items()})
            return new


def _abilities(model: Recommender) -> dict[str, bool]:
    """Ask a model one question of each kind; what it cannot do it says with an error."""
    train = model.check_fitted()
    item, user = train.item_ids.tolist()[0], train.user_ids.tolist()[0]
    questions: dict[str, Callable[[], Any]] = {
        "recommend": lambda: model.recommend(user, n=1, explain=True),
        "recommend_new": lambda: model.recommend_new([item], n=1),
        "similar_items": lambda: model.similar_items(item, n=1),
        "similar_users": lambda: model.similar_users(user, n=1),
    }
    if isinstance(model, MultiInterest):
        questions["interests"] = lambda: model.interests(user)
    able = dict.fromkeys((*questions, "interests"), False)
    for name, question in questions.items():
        with suppress(DpcmlError):
            question()
            able[name] = True
    return able
