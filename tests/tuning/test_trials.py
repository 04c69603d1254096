import polars as pl
import pytest

from dpcml.tuning.trial import Outcome, Task
from dpcml.tuning.trials import COLUMNS, Setting, Trials
from dpcml.utils.errors import DataError

SETTING = Setting("here", "abc")
TASK = Task(1, "dpcml", {"margin": 1.0, "diversity": (0.1, None)}, epochs=3)


def test_trials_are_found_again_in_the_file(tmp_path):
    path = tmp_path / "deep" / "trials.csv"
    Trials(path, SETTING).add(TASK, Outcome(1 / 3, 2.0, 3, 2))
    again = Trials(path, SETTING)
    assert again.done(TASK) == Outcome(1 / 3, 2.0, 3, 2), "every bit of the value"
    frame = pl.read_csv(path)
    assert list(frame.columns) == list(COLUMNS)
    assert frame.row(0, named=True)["parameters"] == '{"diversity": [0.1, null], "margin": 1.0}'
    assert [file.name for file in path.parent.iterdir()] == ["trials.csv"]


@pytest.mark.parametrize(
    "other",
    [
        Task(1, "cml", TASK.parameters, 3), Task(1, "dpcml", {"margin": 1.5}, 3), Task(1, "dpcml", TASK.parameters, 4),
        Task(1, "dpcml", TASK.parameters, None), Task(1, "dpcml", TASK.parameters, 3, "MAP"),
        Task(1, "dpcml", TASK.parameters, 3, seed=1),
    ],
)  # fmt: skip
def test_another_task_is_another_trial(other):
    trials = Trials(None, SETTING)
    trials.add(TASK, Outcome(0.5))
    assert trials.done(TASK) is not None
    assert trials.done(other) is None


def test_another_split_is_another_trial(tmp_path):
    Trials(tmp_path / "t.csv", SETTING).add(TASK, Outcome(0.5))
    assert Trials(tmp_path / "t.csv", Setting("here", "other")).done(TASK) is None


def test_failed_trials_are_kept_and_done_again(tmp_path):
    trials = Trials(tmp_path / "t.csv", SETTING)
    trials.add(TASK, Outcome(None, 1.0, error='a "bad", thing'))
    again = Trials(tmp_path / "t.csv", SETTING)
    assert again.done(TASK) is None
    assert again.frame()["error"].to_list() == ['a "bad", thing']
    again.add(TASK, Outcome(0.5))
    assert again.frame()["status"].to_list() == ["ok"], "the second try replaces the first"


def test_without_resume_the_file_is_replaced(tmp_path):
    Trials(tmp_path / "t.csv", SETTING).add(TASK, Outcome(0.5))
    fresh = Trials(tmp_path / "t.csv", SETTING, resume=False)
    assert fresh.done(TASK) is None


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "trial,status\nx,y\n", "\x00\x01\x02"])
def test_a_file_that_is_something_else_is_refused(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=r"t\.csv"):
        Trials(tmp_path / "t.csv", SETTING)
    assert (tmp_path / "t.csv").read_text() == text
