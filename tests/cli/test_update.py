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


@pytest.fixture
def trained(tmp_path):
    """A model of `dpcml train`, whose folder has one for evaluation too."""
    planted(80, 60, seed=2).write_csv(tmp_path / "likes.csv")
    catalogue = [f"{item},Film {item},Genre {item % 4}\n" for item in [*range(60), 9999]]
    (tmp_path / "items.csv").write_text("item_id,title,genres\n" + "".join(catalogue))
    asked = [
        "--items",
        tmp_path / "items.csv",
        "--data",
        tmp_path / "likes.csv",
        "--model",
        "dpcml",
        "--set",
        "dim=8",
        "--set",
        "epochs=3",
        "--quiet",
    ]
    assert run("train", *asked, "--out", tmp_path / "model").exit_code == 0
    return tmp_path / "model"


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_held_out_figures_outlive_an_update(trained, journal, tmp_path):
    before = json.loads(run("evaluate", trained, "--json").stdout)
    liked = load(trained).train_
    journal.append(Feedback(3, int(np.setdiff1d(np.arange(liked.n_items), liked.of(3))[0]), "like"))
    assert run("update", trained, "--feedback", tmp_path / "journal", "--out", tmp_path / "new").exit_code == 0
    after = json.loads(run("evaluate", tmp_path / "new", "--json").stdout)
    assert {**after, "seconds": 0} == {**before, "seconds": 0}
    result = run("update", trained, "--items", tmp_path / "items.csv", "--out", trained)
    assert result.exit_code == 0, result.stderr
    assert json.loads(run("evaluate", trained, "--json").stdout)["metrics"] == before["metrics"]


def test_without_a_model_for_evaluation_an_updated_one_cannot_be_evaluated(trained, journal, tmp_path):
    asked = ["--data", tmp_path / "likes.csv", "--model", "dpcml", "--set", "dim=8", "--set", "epochs=3", "--quiet"]
    assert run("train", *asked, "--no-refit", "--out", tmp_path / "old").exit_code == 0
    journal.append(Feedback("somebody" if load(trained).train_.user_ids.dtype == object else 10**6, 5, "like"))
    assert run("update", tmp_path / "old", "--feedback", tmp_path / "journal", "--out", tmp_path / "new").exit_code == 0
    result = run("evaluate", tmp_path / "new")
    assert result.exit_code == 2
    assert "changed by 'dpcml update'" in result.stderr
