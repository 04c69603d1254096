import numpy as np
import pytest

from dpcml import Interactions
from dpcml.models.histories import likes_of
from dpcml.utils.errors import ParameterError


@pytest.fixture(scope="module")
def train():
    return Interactions.from_csr(np.eye(4), item_ids=["dune", "emma", "it", "ulysses"])


@pytest.mark.parametrize(
    "history", [["it", "dune"], ("dune", "it", "dune"), np.array(["it", "dune"]), {"it", "dune"}, iter(["it", "dune"])]
)
def test_one_history_in_any_form(train, history):
    likes, single = likes_of(history, train)
    assert single
    assert likes.toarray().tolist() == [[1, 0, 1, 0]]
    assert likes.dtype == np.float32


@pytest.mark.parametrize(
    "histories",
    [[["emma"], ["it", "dune"]], (np.array(["emma"]), ("it", "dune")), np.array([["emma"] * 2, ["it", "dune"]])],
)
def test_several_histories_in_any_form(train, histories):
    likes, single = likes_of(histories, train)
    assert not single
    assert likes.toarray().tolist() == [[0, 1, 0, 0], [1, 0, 1, 0]]


def test_a_sequence_of_one_history_is_several(train):
    likes, single = likes_of([["emma"]], train)
    assert not single
    assert likes.shape == (1, 4)


@pytest.mark.parametrize("histories", ["emma", b"emma", 3, None, {"emma": 1}, np.array("emma")])
def test_what_is_no_sequence_is_refused(train, histories):
    with pytest.raises(ParameterError, match="pass a sequence of item ids"):
        likes_of(histories, train)


def test_ids_and_sequences_do_not_mix(train):
    with pytest.raises(ParameterError, match="history 1 is 'it', others are sequences"):
        likes_of([["emma"], "it"], train)
