"""A run from data to a saved model and on to a report, without the command line."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dpcml import DPCML, EASE, Blend, Interactions, load
from dpcml.data.shards import Shards
from dpcml.data.synthetic import planted
from dpcml.scale.ingestion import ingest
from dpcml.storage import read_card, save
from dpcml.utils.errors import DataError, ParameterError
from dpcml.workflow import DataSource, checkpoint_folder, evaluate_saved, train_and_save


@pytest.fixture
def source(tmp_path, monkeypatch):
    planted(120, 90, positives=15, n_categories=4, seed=3).write_csv(tmp_path / "likes.csv")
    monkeypatch.chdir(tmp_path)
    return DataSource("likes.csv", {"core": 2})


def model(**changes):
    return DPCML(**{"n_vectors": 2, "dim": 8, "epochs": 3, "n_candidates": 3, **changes})


def test_a_source_finds_its_data_from_anywhere(source, tmp_path, monkeypatch):
    expected = source.read().content_hash
    plain = source.to_dict()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert DataSource(**plain).read().content_hash == expected
    assert DataSource("steam-200k").to_dict() == {"data": "steam-200k", "options": {}}


def test_the_planted_world_takes_no_options():
    with pytest.raises(ParameterError, match="core"):
        DataSource("planted", {"core": 2}).read()


def test_from_data_to_a_report(source, tmp_path):
    found = train_and_save(model(), source.read(), "m", source=source, label="mine", split_seed=4)
    report = evaluate_saved("m", k=(3,))
    assert report.label == found["model"] == "mine"
    assert read_card("m")["record"]["seed"] == found["seed"] == 0
    assert report.split == found["split"]["hash"] == source.read().split((0.6, 0.2, 0.2), 4).hash
    assert not checkpoint_folder("m").exists()


def test_shards_keep_their_own_split(source, tmp_path):
    shards = DataSource(str(ingest(["likes.csv"], "shards", split_seed=2)))
    expected = Shards.open("shards").split()
    found = train_and_save(EASE(), shards.read(), "m", source=shards)
    assert found["split"] == {"by": "shards", "seed": None, "rule": expected.rule, "hash": expected.hash}
    assert read_card("m")["record"]["split"] == found["split"]
    assert evaluate_saved("m", k=(3,)).split == expected.hash
    with pytest.raises(ParameterError, match=r"--split time: .*shards has a split of its own \(hash of .*seed 2\)"):
        train_and_save(EASE(), shards.read(), "n", source=shards, split="time")
    with pytest.raises(ParameterError, match=r"--split-seed 4: .*ingest anew by .*--split-seed 4"):
        train_and_save(EASE(), shards.read(), "n", source=shards, split_seed=4)


def test_records_of_shards_that_name_another_rule_are_read(source, tmp_path):
    """Earlier versions kept the rule that was asked for."""
    shards = DataSource(str(ingest(["likes.csv"], "shards")))
    parts = Shards.open("shards").split()
    split = {"by": "time", "seed": 4, "rule": parts.rule, "hash": parts.hash}
    record = {"source": shards.to_dict(), "data_hash": shards.read().content_hash, "split": split}
    save(EASE().fit(parts.train), "m", record=record)
    assert evaluate_saved("m", k=(3,)).split == parts.hash


def test_foreign_files_in_the_checkpoint_folder_stay(source, tmp_path):
    checkpoint_folder("m").mkdir()
    (checkpoint_folder("m") / "notes.txt").write_text("mine")
    train_and_save(model(), source.read(), "m", source=source)
    assert [file.name for file in checkpoint_folder("m").iterdir()] == ["notes.txt"]


def test_a_place_that_is_taken_is_refused_before_training(source, tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "thesis.txt").write_text("years of work")
    untouched = model()
    with pytest.raises(DataError, match=r"holds thesis\.txt"):
        train_and_save(untouched, source.read(), "m", source=source)
    assert not hasattr(untouched, "user_vectors_")


def test_everything_leaves_nothing_to_evaluate(source):
    train_and_save(model(), source.read(), "m", source=source, everything=True)
    assert load("m").train_.n_positives == source.read().n_positives
    with pytest.raises(DataError, match="trained on everything"):
        evaluate_saved("m")


def test_the_model_for_use_has_learned_everything_and_evaluation_the_training_part(source):
    data = source.read()
    found = train_and_save(model(epochs=6, validate_every=1, popularity=None), data, "m", source=source)
    train_and_save(model(epochs=6, validate_every=1, popularity=None), data, "half", source=source, refit=False)
    used, half = load("m"), load("half")
    assert used.train_.n_positives == data.n_positives == found["refit"]["positives"]
    assert half.train_.n_positives == found["positives"] < data.n_positives
    assert len(used.history_.epochs) == found["best_epoch"] == used.stop_after
    assert used.popularity == pytest.approx(half.popularity_weight_[0])
    reports = [evaluate_saved(folder).to_dict() for folder in ("m", "half")]
    assert reports[0].keys() == reports[1].keys()
    assert reports[0]["metrics"] == reports[1]["metrics"]
    for name, value in found["test"]["metrics"].items():
        assert reports[0]["metrics"][name] == value
    assert read_card("m")["record"]["test"] == found["test"]


def test_a_model_with_its_evaluation_is_replaced_as_a_whole(source, tmp_path):
    for refit in (True, False):
        train_and_save(model(), source.read(), "m", source=source, refit=refit)
        assert (tmp_path / "m" / "evaluation").exists() == refit
    train_and_save(model(), source.read(), "m", source=source)
    (tmp_path / "m" / "evaluation" / "thesis.txt").write_text("years of work")
    with pytest.raises(DataError, match=r"holds evaluation/thesis\.txt"):
        train_and_save(model(), source.read(), "m", source=source)


def test_a_run_that_is_stopped_while_it_learns_everything_goes_on_with_the_same_bits(source, monkeypatch):
    data = source.read()
    whole = Blend([model(epochs=6), EASE()])
    train_and_save(whole, data, "whole", source=source)

    def stop(*given, **options):
        raise DataError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("dpcml.storage.save", stop)
        with pytest.raises(DataError, match="go on with --resume"):
            train_and_save(Blend([model(epochs=6), EASE()]), data, "m", source=source, checkpoint_every=1)
    assert (checkpoint_folder("m") / "refit").exists()
    train_and_save(Blend([model(epochs=6), EASE()]), data, "m", source=source, resume=True)
    assert (load("m").score([0, 5]) == load("whole").score([0, 5])).all()
    assert not checkpoint_folder("m").exists()


def test_what_an_earlier_run_left_does_not_stop_another_from_going_on(source, monkeypatch):
    data = source.read()

    def stop(*given, **options):
        raise DataError("the disk is full")

    for place, epochs in (("dpcml.storage.save", 6), ("dpcml.workflow.train._held_out", 4)):
        with monkeypatch.context() as patch:
            patch.setattr(place, stop)
            with pytest.raises(DataError, match="the disk is full"):
                train_and_save(model(epochs=epochs), data, "m", source=source, checkpoint_every=1)
    train_and_save(model(epochs=4), data, "m", source=source, resume=True)
    assert not checkpoint_folder("m").exists()


@pytest.mark.parametrize("low", [False, True])
def test_users_who_like_every_item_stop_no_training(tmp_path, low):
    likes = np.random.default_rng(0).random((30, 12)) < 0.4
    likes[7] = likes[9] = True
    data = Interactions.from_csr(likes)
    if low:  # what is known and not liked stays hidden
        data = replace(data, low_rated=sparse.csr_array(~likes & (np.arange(30) == 3)[:, None]))
    for options in ({}, {"everything": True}):
        with pytest.warns(UserWarning, match=r"users who like all 12 items \(7, 9\): their likes are left out"):
            train_and_save(model(), data, tmp_path / "m", source=DataSource("planted"), **options)
        used = load(tmp_path / "m")
        assert used.train_.user_ids.tolist() == data.user_ids.tolist()
        assert used.train_.per_user[[7, 9]].tolist() == [0, 0]
        assert used.train_.n_positives == data.n_positives - 24
        assert len(used.recommend(7)[0]) == 0
        assert set(used.recommend(3, n=12)[0]) == (set() if low else set(np.flatnonzero(~likes[3])))


def test_data_in_which_everybody_likes_everything_is_an_error(tmp_path):
    data = Interactions.from_csr(np.ones((3, 4)))
    with pytest.raises(DataError, match="likes all 4 items: there is no negative to learn from"):
        train_and_save(model(), data, tmp_path / "m", source=DataSource("planted"), everything=True)
