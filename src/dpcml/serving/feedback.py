"""Feedback while serving: what a person said changes their lists at once."""

from __future__ import annotations

import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpcml.data.items import as_integer, id_array, positions
from dpcml.feedback import Feedback, FeedbackJournal
from dpcml.retrieval.request import UserBatch
from dpcml.serving.errors import APIError
from dpcml.serving.model_store import LoadedModel
from dpcml.serving.schemas import MAX_HISTORY
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.errors import UnknownIdError

CACHED_VECTORS = 10_000  # people whose vectors are kept until they say something new


@dataclass(frozen=True, eq=False)
class Person:
    """What one person said so far: the last word about each item, by the text of its id.

    It never changes: whoever says something new is a new object.
    """

    said: Mapping[str, Feedback] = field(default_factory=dict)

    def ids(self, action: str) -> list[Any]:
        """Return the ids of the items for which the last word is an action."""
        return [one.item for one in self.said.values() if one.action == action]


NOTHING = Person()


class FeedbackStore:
    """What people said, read from the journal; entries of other worker processes are seen at once.

    Parameters
    ----------
    journal
        The file that holds it.
    """

    def __init__(self, journal: FeedbackJournal) -> None:
        self._journal, self._people = journal, dict[str, Person]()
        self._vectors: OrderedDict[tuple[str, str], tuple[Person, FloatArray]] = OrderedDict()
        self._lock, self._restarts = threading.Lock(), journal.restarts
        self.refresh()

    @property
    def damaged(self) -> int:
        """Lines of the journal that could not be read."""
        return self._journal.damaged

    def refresh(self) -> None:
        """Take in what was written since the last call, by this process or another; cheap if that is nothing."""
        with self._lock:
            entries, changed = self._journal.read_new(), dict[str, dict[str, Feedback]]()
            again = self._journal.restarts != self._restarts  # some of what was read is gone: these are all entries
            before = {} if again else self._people
            for one in entries:
                user, item = str(one.user), str(one.item)
                if user not in changed:  # others may read the old words meanwhile
                    changed[user] = dict(before.get(user, NOTHING).said)
                changed[user].pop(item, None)
                if one.action != "clear":
                    changed[user][item] = one
            people = {user: Person(said) for user, said in changed.items()}
            if again:
                self._people, self._restarts = people, self._journal.restarts
            else:
                self._people.update(people)

    def person(self, user: Any) -> Person | None:
        """Return what a person said so far; None for nothing."""
        self.refresh()
        found = self._people.get(str(user))
        return found if found is not None and found.said else None

    def add(self, entry: Feedback) -> Person:
        """Write what a person said to the journal; return all that they said."""
        person = self.person(entry.user)
        if person is not None and len(person.said) >= MAX_HISTORY and str(entry.item) not in person.said:
            raise APIError(
                422, "too_much", f"this person has said something about {MAX_HISTORY:,} items, which is the most",
                "put the likes into the model with 'dpcml update', or clear some",
            )  # fmt: skip
        self._journal.append(entry)
        self.refresh()
        return self._people.get(str(entry.user), NOTHING)

    def batch(self, loaded: LoadedModel, user: Any, person: Person) -> UserBatch:
        """Return a person as the model sees them now.

        Likes join the history, dislikes leave it, and vectors are folded in from the rest; dislikes and hidden items
        are never recommended. A model that cannot serve new histories only leaves items out.
        """
        train = loaded.model.train_
        row = int(positions(train.user_ids, np.atleast_1d(id_array([user])), train.user_order)[0])
        liked, disliked = (_columns(loaded, person.ids(one)) for one in ("like", "dislike"))
        before = np.zeros(0, dtype=np.int32) if row < 0 else train.of(row)
        history = np.setdiff1d(np.union1d(before, liked), disliked).astype(np.int32)
        out = unwanted(loaded, person)
        changed = not np.array_equal(history, before)
        if row >= 0 and not (changed and len(history) and loaded.capabilities["recommend_new"]):
            batch = UserBatch.known(train, np.array([row]))
            batch.hidden = np.union1d(out, liked).astype(np.int32)
            return batch
        if not len(history):
            raise UnknownIdError(f"unknown user {str(user)!r}: no likes of theirs are known yet; send one to /feedback")
        batch = UserBatch.of_items(history, train.n_items)
        batch.hidden = out
        if row >= 0 and train.low_rated is not None:
            batch.low_rated = UserBatch.of_items(train.low_rated_of(row), train.n_items).likes
        batch.vectors = self._folded(loaded, user, person, batch)
        return batch

    def _folded(self, loaded: LoadedModel, user: Any, person: Person, batch: UserBatch) -> FloatArray | None:
        """Return the vectors of a person, which are computed once; None for a model without vectors."""
        model = loaded.model.multi_interest
        if model is None:
            return None
        key = loaded.fingerprint, str(user)
        with self._lock:
            kept = self._vectors.get(key)
        if kept is not None and kept[0] is person:
            return kept[1]
        train = loaded.model.train_
        learned = batch.liked(0)[: train.n_items - 1]  # fold-in needs an item that is not liked
        vectors = model.fold_in(train.item_ids[learned])[None]
        with self._lock:
            self._vectors[key] = person, vectors
            self._vectors.move_to_end(key)
            if len(self._vectors) > CACHED_VECTORS:
                self._vectors.popitem(last=False)
        return vectors


def check_user(loaded: LoadedModel, user: Any) -> None:
    """Refuse the id of a user that the model could not learn from the journal."""
    text = str(user)
    if loaded.model.train_.user_ids.dtype.kind == "i" and as_integer(text) is None:
        reason = "user: the user ids of this model are whole numbers below 2^63"
        raise APIError(422, "invalid", reason, "send a whole number, for somebody new too")
    if any(unicodedata.category(character) == "Cc" for character in text):
        reason = "user: the id has control characters, such as a line break"
        raise APIError(422, "invalid", reason, "send the id without them")


def unwanted(loaded: LoadedModel, person: Person | None) -> IntArray:
    """Return the ascending positions of the items that are never recommended to a person: disliked and hidden ones."""
    return _columns(loaded, [] if person is None else [*person.ids("dislike"), *person.ids("hide")])


def _columns(loaded: LoadedModel, ids: list[Any]) -> IntArray:
    """Return the ascending positions of items; those that this model does not know are left out."""
    train = loaded.model.train_
    found = positions(train.item_ids, np.atleast_1d(id_array(ids)), train.items.order)
    return np.unique(found[found >= 0]).astype(np.int32)
