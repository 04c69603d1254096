"""The search finds what a plain loop over all texts finds, in the same order."""

import numpy as np
import pytest

from dpcml.serving.search import TextSearch, normalise


def plain_search(ids, names, weight, text, limit):
    query = normalise(text.strip())

    def rank(row):
        one, name = normalise(str(ids[row])), normalise(str(names[row]))
        tests = (query == one, query == name, name.startswith(query), f" {query}" in name, True)
        return 0 if not query else tests.index(True)

    found = [row for row in range(len(ids)) if query in normalise(str(names[row])) or query == normalise(str(ids[row]))]
    return sorted(found, key=lambda row: (rank(row), -weight[row], row))[:limit]


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    words = np.array(
        ["Alien", "alienist", "Am\u00e9lie", "heat", "the", "\u0130stanbul", "7", "b", "a.b*", "\ud800"], object
    )
    names = [" ".join(rng.choice(words, rng.integers(1, 4))) for _ in range(500)]
    return np.arange(500), names, rng.integers(0, 20, 500)


@pytest.mark.parametrize("text", ["alien", "AMELIE", "7", "42", "a.b*", "the h", "", " ", "zzz", "\ud800", "i"])
@pytest.mark.parametrize("limit", [1, 20, 1000])
def test_it_finds_what_a_loop_finds(texts, text, limit):
    ids, names, weight = texts
    search = TextSearch(ids, names, weight)
    assert search.search(text, limit) == plain_search(ids, names, weight, text, limit)
    assert search.search(text, limit) == plain_search(ids, names, weight, text, limit), "the second time too"


def test_ids_are_names_where_there_are_no_others():
    ids = np.array(["ann", "joanna", "bob"], dtype=object)
    search = TextSearch(ids, None, np.array([1, 2, 3]))
    assert search.search("ann", 5) == [0, 1]
