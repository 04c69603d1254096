"""Kill a node of a Ray cluster in the middle of a training, as often as asked.

``python -m tests.scale.node_loss --times 10 --out results/bench/ray-faults.json`` starts a cluster of three nodes on
this machine for each run, kills one with a worker after the second checkpoint, and compares the model with that of an
undisturbed training: it must have the same bits.
"""

import argparse
import json
import os
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np

from dpcml import DPCML, Checkpoint, planted
from dpcml.scale import RayRunner
from dpcml.scale.runner import WorkerLostWarning
from dpcml.utils.packages import version

WORKERS = 2


def model():
    return DPCML(n_vectors=2, dim=16, epochs=12, n_candidates=5, batch_size=64, n_threads=1, validate_every=4)


def checkpoints(folder):
    return sorted(Path(folder).glob("worker-*/checkpoint.safetensors"))


def kill_when_written(cluster, nodes, folder, killed):
    """Remove a node that has a worker, once each worker has written a checkpoint."""
    import psutil

    while len(checkpoints(folder)) < WORKERS:
        time.sleep(0.05)
    for node in nodes:
        raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
        if any("TrainingWorker" in "".join(child.cmdline()) for child in raylet.children(recursive=True)):
            killed.append(time.monotonic())
            cluster.remove_node(node, allow_graceful=False)
            return


def one_run(parts, expected):
    """Return what came of one training that lost a node."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=WORKERS) for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    killed, started = [], time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            arguments = (cluster, nodes, folder, killed)
            killer = threading.Thread(target=kill_when_written, args=arguments, daemon=True)
            killer.start()
            found = model().fit(
                parts.train,
                parts.valid,
                runner=RayRunner(WORKERS),
                checkpoint=Checkpoint(folder, every_epochs=1),
                progress=False,
            )
    finally:
        ray.shutdown()
        cluster.shutdown()
    lost = [one for one in said if issubclass(one.category, WorkerLostWarning)]
    return {
        "killed": bool(killed),
        "restarts": len(lost),
        "same_bits": all(np.array_equal(value, expected[name]) for name, value in found.to_arrays().items()),
        "seconds": round(time.monotonic() - started, 1),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    parts = planted(300, 200, seed=0).data.split((0.6, 0.2, 0.2), 0)
    undisturbed = model().fit(parts.train, parts.valid, runner=RayRunner(WORKERS), progress=False).to_arrays()
    runs = [one_run(parts, undisturbed) for _ in range(given.times)]
    found = {"benchmark": "ray-faults", "workers": WORKERS, "nodes": 3, "version": version(), "runs": runs}
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main()
