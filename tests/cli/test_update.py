"""``dpcml update``: the likes of a journal become part of a model."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from dpcml import DPCML, EASE, Blend, Interactions, ItemKNN, load, save
from dpcml.cli import app
from dpcml.data.synthetic import planted
from dpcml.feedback import Feedback, FeedbackJournal


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    model = DPCML(n_vectors=2, dim=8, epochs=3, n_candidates=5).fit(planted(60, 40, seed=1).data)
    return save(model, tmp_path_factory.mktemp("models") / "model")


@pytest.fixture
def journal(tmp_path):
    return FeedbackJournal(tmp_path / "journal")


def update(folder, tmp_path, *more):
    options = ["--feedback", str(tmp_path / "journal"), "--out", str(tmp_path / "new"), "--json", *more]
    return CliRunner().invoke(app, ["update", str(folder), *options])


def test_likes_are_learned(folder, journal, tmp_path):
    old = load(folder)
    unseen = np.setdiff1d(np.arange(old.train_.n_items), old.train_.of(3)).tolist()
    known = int(old.train_.of(4)[0])
    said = [(3, unseen[0], "like"), (3, unseen[1], "like"), (3, unseen[1], "clear"), (3, unseen[2], "hide")]
    said += [(1000, 5, "like"), (1000, 6, "like"), (4, known, "like"), ("a text", 5, "like"), (5, 10**6, "like")]
    for one in said:
        journal.append(Feedback(*one))
    result = update(folder, tmp_path)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["entries"], found["likes"], found["new_users"], found["foreign"]) == (9, 3, 1, 2)
    new = load(tmp_path / "new")
    assert new.train_.n_positives == old.train_.n_positives + 3
    assert unseen[0] in new.train_.of(3)
    assert unseen[1] not in new.train_.of(3)
    assert not set(new.recommend(1000)[0].tolist()) & {5, 6}
    np.testing.assert_array_equal(new.item_vectors_, old.item_vectors_)


def test_weights_and_times_stay(journal, tmp_path):
    data = planted(60, 40, seed=1).data
    timed = Interactions.from_codes(
        data.rows, data.indices, data.user_ids, data.items,
        timestamps=np.arange(data.n_positives, dtype=float), weights=np.full(data.n_positives, 3.0),
    )  # fmt: skip
    model = Blend([DPCML(n_vectors=2, dim=8, epochs=1, n_candidates=5), ItemKNN()]).fit(timed)
    unseen = int(np.setdiff1d(np.arange(40), timed.of(3))[0])
    journal.append(Feedback(3, unseen, "like", 1e9))
    result = update(save(model, tmp_path / "blend"), tmp_path)
    assert result.exit_code == 0, result.output
    new = load(tmp_path / "new").train_
    assert set(new.weights.tolist()) == {3.0}
    assert new.timestamps.max() == 1e9


def test_the_default_blend_learns_likes(journal, tmp_path):
    train, valid = planted(60, 40, seed=1).data.split((0.8, 0.2), 0)
    model = Blend([DPCML(n_vectors=2, dim=8, epochs=3, n_candidates=5), EASE(beta=None)]).fit(train, valid)
    folder = save(model, tmp_path / "blend")
    unseen = int(np.setdiff1d(np.arange(train.n_items), train.of(3))[0])
    journal.append(Feedback(3, unseen, "like"))
    result = update(folder, tmp_path)
    assert result.exit_code == 0, result.output
    new = load(tmp_path / "new")
    assert unseen in new.train_.of(3)
    np.testing.assert_array_equal(new.weights_, model.weights_)
    assert new.members_[1].beta_ == model.members_[1].beta_  # found on a validation part that is not there any more


def test_without_likes_nothing_is_written(folder, journal, tmp_path):
    journal.append(Feedback(3, 1, "hide"))
    result = update(folder, tmp_path)
    assert result.exit_code == 2
    assert "holds no like" in result.output
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("content", "message"), [(None, "cannot be read"), (b"user,item\n", "no feedback journal")])
def test_a_bad_journal_is_told(folder, tmp_path, content, message):
    if content is not None:
        (tmp_path / "journal").write_bytes(content)
    result = update(folder, tmp_path)
    assert result.exit_code == 2
    assert message in result.output


def test_a_model_that_cannot_is_told(journal, tmp_path):
    folder = save(ItemKNN().fit(planted(60, 40, seed=1).data), tmp_path / "knn")
    journal.append(Feedback(3, 1, "like"))
    result = update(folder, tmp_path)
    assert result.exit_code == 2
    assert "cannot take in likes" in result.output
