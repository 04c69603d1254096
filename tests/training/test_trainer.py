import json
import re
import signal
from dataclasses import dataclass, field

import numpy as np
import pytest

from dpcml.training.checkpoint import Checkpoint, Checkpointer
from dpcml.training.trainer import SCHEDULES, Epoch, History, Trainer, TrainingError, deferred_interrupt


@dataclass
class Counter:
    """Something that can be trained: its one number is the number of epochs it has seen."""

    losses: dict[int, float] = field(default_factory=dict)
    vectors: np.ndarray = field(default_factory=lambda: np.zeros(2))
    calls: list[tuple[int, float]] = field(default_factory=list)

    def epoch(self, number, rate, report=None):
        self.calls.append((number, rate))
        self.vectors[:] = number + 1
        if report is not None:
            report(1.0)
        return self.losses.get(number, 1.0 / (number + 1))

    def state(self):
        return {"vectors": self.vectors}

    def learned(self):
        return ["vectors"]


def test_schedules_fall_from_one_to_zero():
    shares = np.linspace(0, 1, 5)
    values = {name: [SCHEDULES[name](share) for share in shares] for name in SCHEDULES}
    assert values["constant"] == [1] * 5
    assert values["linear"] == [1, 0.75, 0.5, 0.25, 0]
    np.testing.assert_allclose(values["cosine"], [1, 0.853553, 0.5, 0.146447, 0], atol=1e-6)


def test_rates_follow_the_schedule():
    model = Counter()
    history = Trainer(4, 0.02, "linear").run(model)
    assert model.calls == [(0, 0.02), (1, 0.015), (2, 0.01), (3, 0.005)]
    assert [epoch.rate for epoch in history.epochs] == [0.02, 0.015, 0.01, 0.005]
    assert [epoch.number for epoch in history.epochs] == [1, 2, 3, 4]
    assert [epoch.loss for epoch in history.epochs] == [1, 1 / 2, 1 / 3, 1 / 4]
    assert model.vectors.tolist() == [4, 4], "without validation the last state stays"


def figures(model, values):
    """Return a validation that reads its figure off the model's number of epochs."""
    return lambda: values[int(model.vectors[0]) - 1]


def test_best_state_is_restored():
    model = Counter()
    history = Trainer(6, 0.1, validate_every=1, metric="MRR").run(model, validate=figures(model, [1, 2, 5, 4, 5, 3]))
    assert history.best.number == 3
    assert history.metric == "MRR"
    assert model.vectors.tolist() == [3, 3]
    assert len(history.epochs) == 6


@pytest.mark.parametrize(("patience", "epochs"), [(1, 4), (2, 6), (3, 9), (None, 9)])
def test_patience_ends_training_early(patience, epochs):
    model = Counter()
    values = [1, 2, 3, 2, 4, 2, 2, 5, 1] if patience == 3 else [1, 2, 3, 2, 3, 2, 2, 5, 1]
    if patience == 2:
        values = [1, 2, 3, 4, 3, 2, 2, 5, 1]
    history = Trainer(9, 0.1, validate_every=1, patience=patience).run(model, validate=figures(model, values))
    assert len(history.epochs) == epochs
    assert model.vectors[0] == int(np.argmax(values[:epochs])) + 1


def test_validation_comes_every_so_many_epochs_and_at_the_end():
    model = Counter()
    history = Trainer(7, 0.1, validate_every=3).run(model, validate=lambda: 0.5)
    assert [epoch.number for epoch in history.epochs if epoch.validation is not None] == [3, 6, 7]


def test_callbacks_see_the_history_and_can_stop():
    model, seen = Counter(), []

    def look(history):
        seen.append((history.epochs[-1].number, history.epochs[-1].loss))

    history = Trainer(9, 0.1).run(model, callbacks=[lambda history: len(history.epochs) == 3, look])
    assert seen == [(1, 1), (2, 1 / 2), (3, 1 / 3)], "all callbacks are called, after the one that stops too"
    assert len(history.epochs) == 3


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_loss_that_is_no_number_stops_and_keeps_the_last_good_checkpoint(tmp_path, bad):
    model = Counter({4: bad})
    checkpointer = Checkpointer(Checkpoint(tmp_path, every_epochs=2), {})
    with pytest.raises(
        TrainingError, match=r"the loss is NaN or infinite in epoch 5: lower the learning rate, now 0\.1; the last good"
    ) as error:
        Trainer(9, 0.1).run(model, checkpointer=checkpointer)
    assert str(checkpointer.path) in str(error.value)
    arrays, about = checkpointer.read()
    assert about["epoch"] == 4
    assert arrays["now.vectors"].tolist() == [4, 4]


def test_state_that_is_no_number_stops_even_if_the_loss_looks_well(tmp_path):
    """The last step of an epoch is taken after its loss was computed."""

    class Late(Counter):
        def epoch(self, number, rate, report=None):
            loss = super().epoch(number, rate, report)
            if number == 2:
                self.vectors[1] = np.nan
            return loss

    checkpointer = Checkpointer(Checkpoint(tmp_path, every_epochs=1), {})
    with pytest.raises(TrainingError, match="vectors hold NaN or infinity in epoch 3"):
        Trainer(3, 0.1).run(Late(), checkpointer=checkpointer)
    assert checkpointer.read()[1]["epoch"] == 2


def test_no_checkpoint_is_promised_where_none_is():
    with pytest.raises(TrainingError) as error:
        Trainer(3, 0.5).run(Counter({0: np.nan}))
    assert str(error.value) == "the loss is NaN or infinite in epoch 1: lower the learning rate, now 0.5"


@pytest.mark.parametrize(("average", "array"), [(0.0, "user_vectors"), (0.8, "user_average")])
def test_nan_put_into_a_real_model_is_found_where_it_hides(parts, model, tmp_path, average, array):
    """A vector of NaN is never the nearest, so no hinge shows it."""
    train_part, engines = parts.train, []
    settings = {"epochs": 6, "average": average}
    one = model(**settings)
    make = one.make_engine
    one.make_engine = lambda data: engines.append(make(data)) or engines[-1]

    def poison(history):
        if len(history.epochs) == 3:
            engines[0].state()["user_vectors"][4 * 3 + 1] = np.nan

    with pytest.raises(TrainingError, match=rf"{array}.* hold NaN or infinity in epoch 4.*last good checkpoint"):
        one.fit(train_part, checkpoint=Checkpoint(tmp_path, every_epochs=1), callbacks=[poison])
    assert not hasattr(one, "user_vectors_")
    resumed = model(**settings).fit(train_part, checkpoint=tmp_path, resume=True)
    assert (resumed.user_vectors_ == model(**settings).fit(train_part).user_vectors_).all()


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_averages_and_unused_vectors_survive_a_break(parts, model, tmp_path, stop):
    """The best state lies before the break or after it; the bits are those of a run without one."""
    settings = {
        "epochs": 8, "average": 0.8, "pull": 0.5, "n_vectors": "adaptive", "negatives": "partial-auc",
        "init": "clusters", "popularity": None, "validate_every": 1,
    }  # fmt: skip
    whole = model(**settings).fit(parts.train, parts.valid)
    at = {"checkpoint": Checkpoint(tmp_path, every_epochs=1)}

    def interrupt(history):
        if len(history.epochs) == stop:
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        model(**settings).fit(parts.train, parts.valid, **at, callbacks=[interrupt])
    resumed = model(**settings).fit(parts.train, parts.valid, **at, resume=True)
    assert len(resumed.history_.epochs) == len(whole.history_.epochs)
    for name in ("user_vectors_", "item_vectors_", "popularity_weight_"):
        assert getattr(resumed, name).tobytes() == getattr(whole, name).tobytes()


@pytest.mark.parametrize("rate", [1e21, 1e38])  # squares of vectors overflow, or vectors
def test_absurd_learning_rate_of_a_real_model_stops(parts, model, rate):
    with pytest.raises(TrainingError, match=re.escape(f"epoch 1: lower the learning rate, now {rate:g}")):
        model(learning_rate=rate, epochs=3).fit(parts.train)


def test_interrupt_waits_for_the_end_of_the_epoch(tmp_path, capsys):
    class Interrupted(Counter):
        def epoch(self, number, rate, report=None):
            if number == 1:
                signal.raise_signal(signal.SIGINT)
            return super().epoch(number, rate, report)

    before = signal.getsignal(signal.SIGINT)
    checkpointer = Checkpointer(Checkpoint(tmp_path, every_epochs=100), {})
    with pytest.raises(
        KeyboardInterrupt, match=r"stopped after epoch 2: go on from .*checkpoint.safetensors with resume"
    ):
        Trainer(5, 0.1).run(Interrupted(), checkpointer=checkpointer)
    assert "stopping after this epoch" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before
    again = Counter()
    history = Trainer(5, 0.1).run(again, checkpointer=checkpointer, resume=True)
    assert [number for number, _ in again.calls] == [2, 3, 4]
    assert len(history.epochs) == 5


def test_second_interrupt_acts_at_once(capsys):
    with deferred_interrupt(True) as interrupted:
        signal.raise_signal(signal.SIGINT)
        assert interrupted()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_interrupt_without_a_checkpoint_acts_at_once():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores Ctrl-C
    try:
        with deferred_interrupt(False) as interrupted, pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not interrupted()


def history(*figures):
    return History("P@3", [Epoch(k + 1, 1.0 / (k + 1), 0.01, 0.5, figure) for k, figure in enumerate(figures)])


@pytest.mark.parametrize(
    ("figures", "best"),
    [
        ((0.1, 0.3, 0.2), 2),
        ((0.2, 0.2), 1),
        ((None, 0.0, None), 2),
        ((None, None), 2),
        ((0.5, None, 0.5, 0.6, None), 4),
    ],
)
def test_best_is_the_earliest_of_the_highest(figures, best):
    assert history(*figures).best.number == best


def test_empty_history_has_no_best():
    assert History().best is None
    assert History().seconds == 0


def test_seconds_add_up():
    assert history(None, None, 0.1).seconds == 1.5


def test_history_survives_json():
    before = history(None, 0.25)
    after = History.from_dict(json.loads(json.dumps(before.to_dict())))
    assert after == before
    assert after.epochs[1].loss == 0.5
