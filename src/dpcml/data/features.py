"""Features of items: tf-idf of their attributes and of the words in their titles."""

from __future__ import annotations

import re

import numpy as np
from scipy import sparse

from dpcml.data.items import ItemTable
from dpcml.utils.arrays import BoolArray, FloatArray

LEAST = 2  # known items that a word or an attribute needs, to say anything of another item
WORD = re.compile(r"\w+")


def content_features(table: ItemTable, known: BoolArray) -> sparse.csr_array:
    """Return features of items by what the titles and attributes of known items have in common with them.

    Attributes and words are two blocks, each of unit length, so that a long title does not outweigh the genres. Numbers
    in titles are words: a year says much of a film.

    Parameters
    ----------
    table
        Titles and attributes of all items.
    known
        Mask of the items from which frequencies are counted; shape (items,).

    Returns
    -------
    sparse.csr_array
        Shape (items, features); rows have length 1, or 0 for items that share nothing with two known ones.

    Examples
    --------
    >>> from dpcml.data.items import Attributes
    >>> titles = np.array(["Alien", "Aliens", "Alien 3"], dtype=object)
    >>> films = ItemTable(np.arange(3), titles, Attributes.from_sets([{"Horror"}, {"Horror"}, {"Horror"}]))
    >>> content_features(films, np.array([True, True, False])).toarray()  # no two known titles share a word
    array([[1.],
           [1.],
           [1.]])
    """
    blocks = []
    if table.attributes is not None:
        blocks.append(table.attributes.matrix.astype(np.float64))
    if table.titles is not None:
        blocks.append(_words([str(title) for title in table.titles]))
    weighted = [_unit_rows(_tf_idf(block, known)) for block in blocks]
    none = sparse.csr_array((len(table), 0))
    return _unit_rows(sparse.csr_array(sparse.hstack([none, *weighted])))


def _words(titles: list[str]) -> sparse.csr_array:
    """Return which words are in which title; shape (titles, words)."""
    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(word, len(numbers)) for word in set(WORD.findall(t.casefold()))] for t in titles]
    indices = np.array([word for row in rows for word in row], dtype=np.int64)
    indptr = np.cumsum([0, *map(len, rows)])
    found = sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(titles), len(numbers)))
    found.sort_indices()
    return found


def _tf_idf(block: sparse.csr_array, known: BoolArray) -> sparse.csr_array:
    counts = np.bincount(block[np.flatnonzero(known)].indices, minlength=block.shape[1])
    kept = np.flatnonzero(counts >= LEAST)
    weights: FloatArray = np.log((known.sum() + 1) / (counts[kept] + 1)) + 1
    return sparse.csr_array(block[:, kept] @ sparse.diags_array(weights))


def _unit_rows(block: sparse.csr_array) -> sparse.csr_array:
    lengths = np.sqrt(np.asarray(block.multiply(block).sum(axis=1)).ravel())
    return sparse.csr_array(sparse.diags_array(1 / np.maximum(lengths, 1e-12)) @ block)
