"""Imported once by the process that the processes of all cases are forked from: code that need not be loaded again.

All kernels that cases need are compiled here, before the clock of any case runs: on a machine that others kept busy,
compiling them within cases took longer than a case may take, and was counted as a hang.

No thread may run here, since a fork copies only the thread that calls it: data come from arrays, because polars starts
threads when it reads a file.
"""

import os

os.environ.update(DPCML_THREADS="1", OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", NO_COLOR="1")

import numpy as np

import dpcml.paper.studies  # noqa: F401
import tests.faults.campaign.__main__  # noqa: F401
from dpcml import CML, DPCML, ItemKNN

likes = np.kron(np.eye(2), np.ones((8, 10))) * (np.random.default_rng(0).random((16, 20)) < 0.8)
for model in (CML(dim=8, epochs=2), DPCML(dim=8, epochs=1, n_candidates=3), ItemKNN(k=3)):
    model.fit(likes)
    model.recommend([0, 1], n=3)
    model.recommend_new([0, 1], n=3)
    model.similar_items(0)
