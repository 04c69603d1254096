"""Kill a node of a Ray cluster in the middle of a training, as often as asked.

``python -m tests.scale.node_loss --times 10 --out results/bench/ray-faults.json`` starts a cluster of three nodes on
this machine for each run, kills one with a worker once all workers have a checkpoint, and compares the model with that
of an undisturbed training: it must have the same bits, after one restart.
"""

import argparse
import json
import os
import tempfile
import threading
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil

from dpcml import DPCML, Checkpoint, planted
from dpcml.scale import RayRunner
from dpcml.scale.runner import WorkerLostWarning
from dpcml.utils.packages import version

WORKERS = 2
RUNNER = RayRunner(WORKERS, sync_every=1000)  # one exchange per epoch: on a busy machine each one takes long


def model():
    return DPCML(n_vectors=2, dim=16, epochs=60, n_candidates=5, batch_size=64, n_threads=1, patience=None)


def training_workers(parent):
    """Return the processes of workers below a process, stopped."""
    found = []
    for process in parent.children(recursive=True):
        try:
            if any("TrainingWorker" in word for word in process.cmdline()):
                process.suspend()  # so that training cannot end before it is disturbed
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


def wait_for_checkpoints(folder):
    while len(list(Path(folder).glob("worker-*/checkpoint.safetensors"))) < WORKERS:
        time.sleep(0.02)


def kill_node(cluster, nodes, folder, killed):
    """Kill a node that has a worker, with all its processes, as a loss of power would."""
    wait_for_checkpoints(folder)
    for node in nodes:
        raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
        if workers := training_workers(raylet):
            cluster.remove_node(node, allow_graceful=False)
            for worker in workers:
                worker.kill()
            killed.append(len(workers))
            return


@contextmanager
def three_nodes():
    """Ray on a head without cores and two nodes, each with room for all workers."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        nodes = [cluster.add_node(num_cpus=WORKERS) for _ in range(2)]
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        yield cluster, nodes
    finally:
        ray.shutdown()
        cluster.shutdown()


def trained(parts, **options):
    found = model().fit(parts.train, parts.valid, runner=RUNNER, progress=False, **options)
    return found.to_arrays()


def disturbed(parts, cluster, nodes):
    """Return what came of a training that lost a node, and its arrays."""
    killed, started = [], time.monotonic()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        threading.Thread(target=kill_node, args=(cluster, nodes, folder, killed), daemon=True).start()
        found = trained(parts, checkpoint=Checkpoint(folder, every_epochs=1))
    lost = [one for one in said if issubclass(one.category, WorkerLostWarning)]
    seconds = round(time.monotonic() - started, 1)
    return {"killed": bool(killed), "restarts": len(lost), "seconds": seconds}, found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    parts = planted(300, 200, seed=0).data.split((0.6, 0.2, 0.2), 0)
    expected, runs = None, []
    for _ in range(given.times):
        with three_nodes() as (cluster, nodes):
            expected = expected or trained(parts)
            run, found = disturbed(parts, cluster, nodes)
        same = all(np.array_equal(value, expected[name]) for name, value in found.items())
        runs.append({**run, "same_bits": same})
    found = {"benchmark": "ray-faults", "workers": WORKERS, "nodes": 3, "version": version(), "runs": runs}
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main()
