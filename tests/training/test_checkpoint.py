import json
import os
import resource
import signal
import time

import numpy as np
import pytest
from safetensors.numpy import save_file

from dpcml.training.checkpoint import FILE, PREVIOUS, Checkpoint, Checkpointer
from dpcml.utils.errors import DataError, ParameterError, RecoveryWarning

ARRAYS = {"now.x": np.arange(6, dtype=np.float32).reshape(2, 3), "now.empty": np.zeros((0, 8), np.float32)}


def test_what_is_written_is_read(tmp_path):
    one = Checkpointer(Checkpoint(tmp_path / "new" / "folder"), {"rate": 0.1, "bounds": (0.05, None)})
    one.write(3, ARRAYS, {"history": {"a": [1, None]}})
    arrays, about = Checkpointer(Checkpoint(tmp_path / "new" / "folder"), {"rate": 0.1, "bounds": (0.05, None)}).read()
    assert about["epoch"] == 3
    assert about["history"] == {"a": [1, None]}
    assert {name: values.tolist() for name, values in arrays.items()} == {
        name: v.tolist() for name, v in ARRAYS.items()
    }
    assert [file.name for file in one.path.parent.iterdir()] == [FILE]


def test_due_by_epochs_or_by_time(tmp_path, monkeypatch):
    one = Checkpointer(Checkpoint(tmp_path, every_epochs=3, every_minutes=10), {})
    assert [one.due(epoch) for epoch in (1, 2, 3)] == [False, False, True]
    one.write(3, ARRAYS, {})
    assert not one.due(5)
    assert one.due(6)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 601)
    assert one.due(4)


def test_write_that_fails_leaves_the_old_checkpoint(tmp_path):
    """The file may not grow beyond 10 kB, as if the disk were full."""
    one = Checkpointer(Checkpoint(tmp_path), {})
    one.write(1, ARRAYS, {})
    limits, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(DataError, match=r"cannot be written .*File too large"):
            one.write(2, {"now.x": np.zeros(10**5)}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert one.read()[1]["epoch"] == 1
    assert [file.name for file in tmp_path.iterdir()] == [FILE]


def test_missing_checkpoint(tmp_path):
    with pytest.raises(DataError, match="no checkpoint here; train without resume first"):
        Checkpointer(Checkpoint(tmp_path), {}).read()


@pytest.mark.parametrize("damage", ["empty", "short", "noise", "head"])
def test_damaged_checkpoint(tmp_path, damage):
    one = Checkpointer(Checkpoint(tmp_path), {})
    one.write(1, ARRAYS, {})
    whole = one.path.read_bytes()
    one.path.write_bytes(
        {"empty": b"", "short": whole[:-5], "noise": os.urandom(200), "head": b"\xff" * 8 + whole[8:]}[damage]
    )
    with pytest.raises(DataError, match=r"damaged checkpoint .*remove it and train anew"):
        one.read()


def test_any_flipped_bit_is_noticed_and_the_checkpoint_before_is_used(tmp_path):
    """Finding 4: of 150 flipped bits, 136 resumed to another model."""
    one = Checkpointer(Checkpoint(tmp_path), {"rate": 0.1})
    one.write(1, ARRAYS, {"history": {"loss": [0.5]}})
    one.write(2, {name: values + 1 for name, values in ARRAYS.items()}, {"history": {"loss": [0.5, 0.25]}})
    assert one.read()[1]["epoch"] == 2
    whole = one.path.read_bytes()
    for place in np.random.default_rng(0).choice(len(whole) * 8, 200, replace=False).tolist():
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        one.path.write_bytes(damaged)
        with pytest.warns(RecoveryWarning, match="damaged checkpoint .*going on from the one before, of epoch 1"):
            arrays, about = one.read()
        assert about["epoch"] == 1
        assert arrays["now.x"].tolist() == ARRAYS["now.x"].tolist()
    one.path.unlink()
    with pytest.warns(RecoveryWarning):
        assert one.read()[1]["epoch"] == 1
    one.previous.write_bytes(whole[:-1])
    with pytest.raises(DataError, match="damaged checkpoint"):
        one.read()


def test_the_checkpoint_before_is_kept_where_there_are_no_links(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", lambda *_: exec("raise PermissionError(1, 'no links')"))
    one = Checkpointer(Checkpoint(tmp_path), {})
    for epoch in (1, 2, 3):
        one.write(epoch, ARRAYS, {})
    assert one._read(one.path)[1]["epoch"] == 3
    assert one._read(one.previous)[1]["epoch"] == 2
    assert sorted(file.name for file in tmp_path.iterdir()) == [PREVIOUS, FILE]


def test_a_damaged_checkpoint_resumes_to_the_same_bits(parts, model, tmp_path):
    settings = {"epochs": 6, "learning_rate": 0.02}
    stop = [lambda history: len(history.epochs) == 4]
    model(**settings).fit(parts.train, checkpoint=Checkpoint(tmp_path, every_epochs=2), callbacks=stop)
    content = bytearray((tmp_path / FILE).read_bytes())
    content[-5] ^= 64
    (tmp_path / FILE).write_bytes(content)
    with pytest.warns(RecoveryWarning, match="of epoch 2"):
        resumed = model(**settings).fit(parts.train, checkpoint=tmp_path, resume=True)
    same(resumed, model(**settings).fit(parts.train))


@pytest.mark.parametrize(
    "about", [None, "not json", "[]", "{}", '{"format": 4}', '{"format": "x"}', '{"format": 4, "epoch": 1}']
)
def test_foreign_file(tmp_path, about):
    one = Checkpointer(Checkpoint(tmp_path), {})
    save_file(ARRAYS, one.path, metadata=None if about is None else {"dpcml": about})
    with pytest.raises(DataError, match="damaged checkpoint"):
        one.read()


@pytest.mark.parametrize(("number", "way"), [(99, "newer than this; update dpcml"), (1, "older than this; train anew")])
def test_checkpoint_of_another_format(tmp_path, number, way):
    one = Checkpointer(Checkpoint(tmp_path), {})
    about = {"format": number, "version": "9.0", "identity": {}, "epoch": 1}
    save_file(ARRAYS, one.path, metadata={"dpcml": json.dumps(about)})
    with pytest.raises(DataError, match=rf"written by dpcml 9\.0, {way}"):
        one.read()


@pytest.mark.parametrize("other", [{"rate": 0.2, "dim": 8}, {"rate": 0.1}, {"rate": 0.1, "dim": 8, "more": 1}])
def test_checkpoint_of_another_run(tmp_path, other):
    Checkpointer(Checkpoint(tmp_path), {"rate": 0.1, "dim": 8}).write(1, ARRAYS, {})
    with pytest.raises(ParameterError, match=r"of a run with (rate=0\.1|dim=8|more=None), this one has"):
        Checkpointer(Checkpoint(tmp_path), other).read()


def same(one, other):
    assert (one.user_vectors_ == other.user_vectors_).all()
    assert (one.item_vectors_ == other.item_vectors_).all()
    plain = [[(e.number, e.loss, e.rate, e.validation) for e in model.history_.epochs] for model in (one, other)]
    assert plain[0] == plain[1]


@pytest.mark.parametrize("cut", [1, 3, 4, 7])
@pytest.mark.parametrize("changes", [{"schedule": "cosine"}, {"patience": 1, "epochs": 30}, {"optimizer": "adagrad"}])
def test_resumed_run_is_bit_identical(parts, model, tmp_path, cut, changes):
    settings = {"epochs": 8, "learning_rate": 0.02, **changes}
    whole = model(**settings).fit(parts.train, parts.valid)
    assert len(whole.history_.epochs) < settings["epochs"] or "patience" not in changes
    stop = [lambda history: len(history.epochs) == cut]
    options = {"checkpoint": Checkpoint(tmp_path, every_epochs=2)}
    model(**settings).fit(parts.train, parts.valid, callbacks=stop, **options)
    resumed = model(**settings, n_threads=2).fit(parts.train, parts.valid, resume=True, **options)
    same(whole, resumed)
    same(whole, model(**settings).fit(parts.train, parts.valid, resume=True, **options))  # a finished run, once more


def test_resume_without_a_checkpoint_begins_anew(parts, model, tmp_path):
    resumed = model(epochs=2).fit(parts.train, checkpoint=tmp_path, resume=True)
    same(resumed, model(epochs=2).fit(parts.train))
    with pytest.raises(ParameterError, match="pass the folder of the checkpoint"):
        model().fit(parts.train, resume=True)


def test_other_parameters_or_data_are_refused(parts, model, tmp_path):
    model(epochs=2).fit(parts.train, checkpoint=tmp_path)
    with pytest.raises(ParameterError, match=r"of a run with margin=None, this one has 0\.5"):
        model(epochs=2, margin=0.5).fit(parts.train, checkpoint=tmp_path, resume=True)
    with pytest.raises(ParameterError, match="of a run with data="):
        model(epochs=2).fit(parts.test, checkpoint=tmp_path, resume=True)
    with pytest.raises(ParameterError, match="of a run with valid="):
        model(epochs=2).fit(parts.train, parts.valid, checkpoint=tmp_path, resume=True)


def test_arrays_that_do_not_fit_are_refused(parts, model, tmp_path):
    model(epochs=2).fit(parts.train, checkpoint=tmp_path)
    one = Checkpointer(Checkpoint(tmp_path), {})
    one._check = lambda found: vars(one).update(identity=found)
    arrays, about = one.read()
    one.write(2, {**arrays, "now.item_moments": arrays["now.item_moments"][:-1]}, {"history": about["history"]})
    with pytest.raises(DataError, match=r"damaged checkpoint .*item_moments"):
        model(epochs=2).fit(parts.train, checkpoint=tmp_path, resume=True)


def test_killed_run_goes_on_to_the_same_bits(parts, model, start_training, tmp_path):
    settings = {"epochs": 12, "learning_rate": 0.02}
    process = start_training(tmp_path / "run", **settings)
    for line in process.stdout:
        if line == "epoch 5\n":
            process.send_signal(signal.SIGKILL)
            break
    assert process.wait() == -signal.SIGKILL
    resumed = model(**settings).fit(parts.train, parts.valid, checkpoint=tmp_path / "run", resume=True)
    same(resumed, model(**settings).fit(parts.train, parts.valid))


def test_interrupted_run_leaves_a_checkpoint_and_says_how_to_go_on(parts, model, start_training, tmp_path):
    settings = {"epochs": 500, "learning_rate": 0.02}
    process = start_training(tmp_path / "run", 0.2, **settings)
    for line in process.stdout:
        if line == "epoch 2\n":
            process.send_signal(signal.SIGINT)
            break
    _, said = process.communicate()
    assert process.returncode != 0
    assert "stopping after this epoch" in said
    assert f"go on from {tmp_path / 'run' / FILE} with resume" in said
    stop = [lambda history: len(history.epochs) == 6]
    resumed = model(**settings).fit(parts.train, parts.valid, checkpoint=tmp_path / "run", resume=True, callbacks=stop)
    same(resumed, model(**settings).fit(parts.train, parts.valid, callbacks=stop))
