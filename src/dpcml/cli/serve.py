"""``dpcml serve``: a model as an HTTP service, with a page to explore it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from dpcml.cli.console import note
from dpcml.cli.options import Folder
from dpcml.utils.errors import ParameterError


def serve(
    directory: Folder,
    host: Annotated[str, typer.Option(help="Address to listen on; only this machine by default.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for a free one.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Worker processes.")] = 1,
    token_file: Annotated[Path | None, typer.Option(help="File with the token that clients must send.")] = None,
    compare: Annotated[Path | None, typer.Option(help="Folder of a second model, shown beside the first.")] = None,
    index: Annotated[
        bool, typer.Option("--index", help="Build an approximate index of a large catalogue, unless there is one.")
    ] = False,
    feedback: Annotated[
        Path | None,
        typer.Option(
            metavar="JOURNAL", help="Take feedback, and keep it in this file; beyond this machine with a token."
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A name of this server, if clients use one.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not log every request.")] = False,
) -> None:
    """Serve a model: recommendations over HTTP, and the explorer page at /.

    SIGHUP or POST /api/v1/reload loads the folder again without dropping a request. SIGTERM and Ctrl-C finish the
    requests in progress first.
    """
    # Requests run in parallel: a matrix product on all cores would make the others wait. The libraries read these
    # variables when they are first imported, which is below.
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    from dpcml.utils.packages import require

    for module in ("fastapi", "uvicorn", "httptools", "orjson", "prometheus_client"):
        require(module, extra="serve")
    from dpcml.serving.run import run
    from dpcml.serving.settings import ServeSettings, is_loopback, is_readable_by_others, read_token

    token = None if token_file is None else read_token(token_file)
    if token_file is not None and is_readable_by_others(token_file):
        note(f"warning: others on this machine can read {token_file}: chmod 600 {token_file}")
    if feedback is not None and token is None and not is_loopback(host):
        raise ParameterError(f"--feedback with --host {host}: anybody could write to it; pass --token-file too")
    if token is None and not is_loopback(host):
        note(f"warning: {host} can be reached by others and there is no token: pass --token-file")
    if index:
        note("building the index of a large catalogue takes minutes the first time")
    names = (*(allow_host or ()), *(() if host in ("0.0.0.0", "::") else (host,)))
    settings = ServeSettings(
        token, compare, log_requests=not quiet, index=index, hosts=names, feedback=feedback,
        known_hosts_only=token is None and is_loopback(host),
    )  # fmt: skip
    run(
        directory, settings, host=host, port=port, workers=workers,
        ready=lambda address: note(f"serving {directory} at {address} (Ctrl-C stops it)"),
    )  # fmt: skip
