"""Hyper-parameter search on the validation part, with optuna."""

from dpcml.tuning.run import TuningProgress as TuningProgress
from dpcml.tuning.search import TuningResult as TuningResult
from dpcml.tuning.search import tune as tune
from dpcml.tuning.search import write_best as write_best
from dpcml.tuning.space import SearchSpace as SearchSpace
from dpcml.tuning.space import read_space as read_space
