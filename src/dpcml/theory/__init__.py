"""The generalisation bound of the paper, and its empirical counterpart."""

from dpcml.theory.bounds import Bound as Bound
from dpcml.theory.bounds import bound as bound
from dpcml.theory.bounds import bound_of as bound_of
from dpcml.theory.objective import Gap as Gap
from dpcml.theory.objective import Objective as Objective
from dpcml.theory.objective import gap as gap
