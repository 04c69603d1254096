"""Lists as the bytes of a response: from ids in a request to the best items, by way of prepared arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dpcml.data.items import id_array, positions
from dpcml.retrieval.lists import popular_reason
from dpcml.retrieval.request import UserBatch, allowed_items
from dpcml.serving.errors import APIError, no_items_left, to_json
from dpcml.serving.feedback import FeedbackStore, Person, unwanted
from dpcml.serving.model_store import LoadedModel, json_id
from dpcml.serving.routes.responses import reasons_json
from dpcml.serving.schemas import (
    MAX_LISTED,
    BatchRecommendRequest,
    NewUserRecommendRequest,
    RecommendOptions,
    RecommendRequest,
)
from dpcml.serving.work import check_client
from dpcml.utils.arrays import Array, BoolArray, FloatArray, IntArray
from dpcml.utils.errors import UnknownIdError

USERS_AT_ONCE = 32  # of a batch; in between, the server looks whether the client still waits


class CandidateFilter(NamedTuple):
    """What may be recommended."""

    allowed: BoolArray | None  # None for all items
    hidden: IntArray  # positions of excluded items, ascending
    unknown: list[Any]  # ids of the request that are no items of the model


class Found(NamedTuple):
    """One list by positions of items."""

    items: IntArray
    scores: FloatArray
    reasons: Sequence[Any] | None = None
    popular: bool = False  # made of popular items, because nothing is known of the user

    def fields(self, loaded: LoadedModel) -> bytes:
        """Return the fields of a response that say what is in the list."""
        return b'"items":%b%b' % (list_json(loaded, self), b',"popular":true' if self.popular else b"")


def one_list(loaded: LoadedModel, asked: RecommendRequest, feedback: FeedbackStore | None = None) -> bytes:
    """Return the response with the list of a user; that of an unknown one is empty, or of popular items, if asked so.

    With ``on_unknown="error"`` an unknown user raises `UnknownIdError`.
    """
    candidates = candidates_of(loaded, asked)
    unknown: dict[str, list[Any]] = {"items": candidates.unknown}
    person = _person(asked.user, feedback)
    try:
        batch = _batch(loaded, asked.user, feedback, person)
    except UnknownIdError:
        if asked.on_unknown == "error":
            raise
        unknown["users"] = [json_id(asked.user)]
        if asked.on_unknown == "skip":
            return b'{"items":[]%b}' % _unknown_json(unknown)
        return _response(loaded, _popular(loaded, asked, candidates, person), unknown)
    return _response(loaded, _best(loaded, batch, asked, candidates)[0], unknown)


def new_list(loaded: LoadedModel, asked: NewUserRecommendRequest) -> bytes:
    """Return the response with the list of somebody new; popular items for an empty history."""
    candidates = candidates_of(loaded, asked)
    need_one = len(asked.history) > 0 and asked.on_unknown != "popular"
    columns, unknown = item_columns(loaded, asked.history, asked.on_unknown, need_one)
    missing = {"items": [*unknown, *candidates.unknown]}
    if not len(columns):
        return _response(loaded, _popular(loaded, asked, candidates), missing)
    batch = UserBatch.of_items(np.unique(columns).astype(np.int32), loaded.model.train_.n_items)
    return _response(loaded, _best(loaded, batch, asked, candidates)[0], missing)


def batch_lists(loaded: LoadedModel, asked: BatchRecommendRequest, feedback: FeedbackStore | None = None) -> bytes:
    """Return the response with the lists of several users; unknown ones are treated as in `one_list`."""
    if asked.n * len(asked.users) > MAX_LISTED:
        raise APIError(
            422, "invalid", f"n={asked.n} for {len(asked.users)} users: at most {MAX_LISTED:,} items per request",
            "send fewer users per request",
        )  # fmt: skip
    train, candidates = loaded.model.train_, candidates_of(loaded, asked)
    rows = positions(train.user_ids, np.atleast_1d(id_array(asked.users)), train.user_order).tolist()
    people = [_person(user, feedback) for user in asked.users]
    strange = [row < 0 and person is None for row, person in zip(rows, people, strict=True)]
    if any(strange) and asked.on_unknown == "error":
        train.user_rows([asked.users[strange.index(True)]])  # raises the error that names a user
    found: list[Found | None] = [None] * len(rows)
    plain = [k for k, row in enumerate(rows) if row >= 0 and people[k] is None]
    for first in range(0, len(plain), USERS_AT_ONCE):
        check_client()
        some = plain[first : first + USERS_AT_ONCE]
        batch = UserBatch.known(train, np.array([rows[k] for k in some]))
        for k, one in zip(some, _best(loaded, batch, asked, candidates), strict=True):
            found[k] = one
    popular = _popular(loaded, asked, candidates) if any(strange) and asked.on_unknown == "popular" else None
    for k, (user, person) in enumerate(zip(asked.users, people, strict=True)):
        if person is not None:
            check_client()
            found[k] = _after_feedback(loaded, user, asked, candidates, feedback, person)
            strange[k] = found[k] is None
        if strange[k] and asked.on_unknown == "popular":
            check_client()
            found[k] = popular if person is None else _popular(loaded, asked, candidates, person)
    kept = [(user, one) for user, one in zip(asked.users, found, strict=True) if one is not None]
    if kept and not any(len(one.items) for _, one in kept):
        raise no_items_left()
    parts = [b'{"user":%b,%b}' % (to_json(json_id(user)), one.fields(loaded)) for user, one in kept]
    strangers = [json_id(user) for user, new in zip(asked.users, strange, strict=True) if new]
    return b'{"lists":[%b]%b}' % (b",".join(parts), _unknown_json({"users": strangers, "items": candidates.unknown}))


def _after_feedback(
    loaded: LoadedModel, user: Any, asked: BatchRecommendRequest, candidates: CandidateFilter,
    feedback: FeedbackStore | None, person: Person,
) -> Found | None:  # fmt: skip
    """Return the list of somebody who said something; None for somebody new without a like, unless that is an error."""
    try:
        batch = _batch(loaded, user, feedback, person)
    except UnknownIdError:
        if asked.on_unknown == "error":
            raise
        return None
    return _best(loaded, batch, asked, candidates)[0]


def batch_of(loaded: LoadedModel, user: Any, feedback: FeedbackStore | None = None) -> UserBatch:
    """Return a user by id, with what they said since the model was trained; `UnknownIdError` for an unknown one."""
    return _batch(loaded, user, feedback, _person(user, feedback))


def _person(user: Any, feedback: FeedbackStore | None) -> Person | None:
    """Return what a user said; a request asks this once, so that all of its answer follows the same words."""
    return None if feedback is None else feedback.person(user)


def _batch(loaded: LoadedModel, user: Any, feedback: FeedbackStore | None, person: Person | None) -> UserBatch:
    if person is None or feedback is None:
        return UserBatch.known(loaded.model.train_, np.array([loaded.user_row(user)]))
    return feedback.batch(loaded, user, person)


def item_columns(
    loaded: LoadedModel, ids: Sequence[Any], on_unknown: str, need_one: bool = False
) -> tuple[IntArray, list[Any]]:
    """Return the positions of the items that the model knows, and the ids that it does not know.

    An unknown id raises `UnknownIdError` if ``on_unknown`` is ``error``, or if one item is needed and none is known.
    """
    train = loaded.model.train_
    if on_unknown == "error":
        return (train.item_columns(ids) if len(ids) else np.zeros(0, dtype=np.int64)), []
    found = positions(train.item_ids, np.atleast_1d(id_array(ids)), train.items.order)
    if need_one and not (found >= 0).any():
        train.item_columns(ids)  # raises the error that names an id
    return found[found >= 0], [json_id(one) for one, place in zip(ids, found.tolist(), strict=True) if place < 0]


def candidates_of(loaded: LoadedModel, asked: RecommendOptions) -> CandidateFilter:
    """Return what may be recommended, from the filters of a request."""
    train, allowed, unknown = loaded.model.train_, None, list[Any]()
    if asked.items is not None or asked.where is not None:
        ids: Array | None = None
        if asked.items is not None:
            columns, unknown = item_columns(loaded, asked.items, asked.on_unknown, need_one=True)
            ids = train.item_ids[columns]
        allowed = allowed_items(train, ids, asked.where)
    excluded, more = item_columns(loaded, asked.exclude or [], asked.on_unknown)
    return CandidateFilter(allowed, np.unique(excluded).astype(np.int32), [*unknown, *more])


def _best(loaded: LoadedModel, batch: UserBatch, asked: RecommendOptions, candidates: CandidateFilter) -> list[Found]:
    if len(candidates.hidden):
        own = candidates.hidden if batch.hidden is None else np.union1d(batch.hidden, candidates.hidden)
        batch.hidden = own
    lists = loaded.model.top_items(
        batch, asked.n, candidates=candidates.allowed, exclude_seen=asked.exclude_seen, mix=asked.mix,
        mix_by=asked.mix_by, explain=asked.explain,
    )  # fmt: skip
    reasons = lists.reasons if asked.explain else [None] * len(batch)
    popular = likes_nothing(batch)
    return [_without_padding(*one) for one in zip(lists.items, lists.scores, reasons, popular, strict=True)]


def likes_nothing(batch: UserBatch) -> list[bool]:
    """Return for each user whether no like is known: models answer with popular items then."""
    ends = batch.likes.indptr.tolist()
    return [first == last for first, last in pairwise(ends)]


def _without_padding(items: IntArray, scores: FloatArray, reasons: Sequence[Any] | None, popular: bool) -> Found:
    kept = (items >= 0) & np.isfinite(scores)
    return Found(items[kept], scores[kept], reasons, popular)


def _popular(
    loaded: LoadedModel, asked: RecommendOptions, candidates: CandidateFilter, person: Person | None = None
) -> Found:
    train = loaded.model.train_
    allowed = np.ones(train.n_items, dtype=bool) if candidates.allowed is None else candidates.allowed.copy()
    allowed[candidates.hidden] = False
    allowed[unwanted(loaded, person)] = False
    best = loaded.popular[allowed[loaded.popular]][: asked.n]
    likes = train.per_item[best]
    reasons = [popular_reason(count) for count in likes.tolist()] if asked.explain else None
    return Found(best, likes.astype(np.float32), reasons, popular=True)


def list_json(loaded: LoadedModel, found: Found) -> bytes:
    """Return a list as JSON."""
    scores = [b"%r" % round(score, 6) for score in found.scores.tolist()]
    starts = [loaded.item_json(column) for column in found.items.tolist()]
    ends = [b"}"] * len(starts)
    if found.reasons is not None:
        ends = [b',"reason":%b}' % to_json(one) for one in reasons_json(loaded, found.reasons)]
    return b"[%b]" % b",".join([a + b + c for a, b, c in zip(starts, scores, ends, strict=True)])


def _response(loaded: LoadedModel, found: Found, unknown: dict[str, list[Any]]) -> bytes:
    if not len(found.items):
        raise no_items_left()
    return b"{%b%b}" % (found.fields(loaded), _unknown_json(unknown))


def _unknown_json(unknown: dict[str, list[Any]]) -> bytes:
    given = {name: ids for name, ids in unknown.items() if ids}
    return b',"unknown":%b' % to_json(given) if given else b""
