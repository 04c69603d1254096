"""The example for Kubernetes: what KubeRay requires of a RayJob, and options that the command line has."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpcml.cli import app

EXAMPLE = Path(__file__).parents[2] / "examples" / "kuberay.yaml"


@pytest.fixture(scope="module")
def job():
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))


def test_it_is_a_ray_job(job):
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", job["metadata"]["name"])
    cluster = job["spec"]["rayClusterSpec"]
    pods = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    assert all(isinstance(value, str) for pod in pods for value in pod["rayStartParams"].values())
    for pod in pods:
        spec = pod["template"]["spec"]
        assert {volume["name"] for volume in spec["volumes"]} == {"shared"}
        for container in spec["containers"]:
            assert {"name", "image", "resources", "volumeMounts"} <= container.keys()
            assert {mount["name"] for mount in container["volumeMounts"]} == {"shared"}
    (workers,) = cluster["workerGroupSpecs"]
    assert workers["minReplicas"] <= workers["replicas"] <= workers["maxReplicas"]


def test_the_workers_have_the_cores_that_the_command_asks_for(job):
    command = job["spec"]["entrypoint"].split()
    assert command[:2] == ["dpcml", "train"]
    known = set(re.findall(r"--[a-z-]+", CliRunner().invoke(app, ["train", "--help"], terminal_width=200).output))
    assert {word for word in command if word.startswith("--")} <= known
    given = dict(pairwise(command[2:]))
    (workers,) = job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    cpu = workers["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    assert workers["replicas"] == int(given["--workers"])
    assert cpu == given["--threads"]
