"""``dpcml bench serve``: load on a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpcml.cli.bench_options import Out, finish
from dpcml.cli.console import AsJson


def serve(
    directory: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="A model; a planted one by default.")
    ] = None,
    requests: Annotated[int, typer.Option(min=1, max=1_000_000, help="At most so many per measurement.")] = 20_000,
    seconds: Annotated[float, typer.Option(min=0.1, max=120, help="At most so long per measurement.")] = 5.0,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes of the server.")] = 1,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Put load on a server on this machine: requests per second, latency, processor time, errors."""
    from dpcml.benchmarks.serving import bench_serving
    from dpcml.utils.text import text_table

    found = bench_serving(directory, requests=requests, seconds=seconds, workers=workers)
    if finish(found, out, as_json):
        return
    print(f"{found['model']} of {found['users']:,} users and {found['items']:,} items; {workers} processes")
    rows = [
        [name, str(run["at_once"]), f"{run['requests_per_second']:,.0f}", f"{run['p50_milliseconds']:.1f}",
         f"{run['p99_milliseconds']:.1f}", f"{run['cpu_milliseconds_per_request']:.2f}", str(run["errors"])]
        for name, runs in found["asked"].items() for run in runs
    ]  # fmt: skip
    print(text_table(["asked", "at once", "per second", "p50 ms", "p99 ms", "cpu ms", "errors"], rows))
