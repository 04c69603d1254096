"""``dpcml doctor``: installed packages, folders of data and compiled kernels, and what is missing."""

from __future__ import annotations

from typing import Annotated

import typer

from dpcml.cli.console import AsJson, print_json, show_table
from dpcml.training.progress import working


def doctor(
    warm: Annotated[bool, typer.Option("--warm", help="First compile the kernels of the default model.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check versions, threads, the kernel cache, data folders and extras."""
    from dpcml.environment import describe_environment
    from dpcml.utils.packages import install_command
    from dpcml.warmup import warm_up

    if warm:
        with working("compiling kernels, once per machine"):
            warm_up()
    found = describe_environment()
    if as_json:
        print_json(found)
        return
    rows = [["python", found["python"]], ["dpcml", found["dpcml"]]]
    rows += [[name, version or "missing"] for name, version in found["packages"].items()]
    rows.append(["threads", f"{found['threads']} of {found['cores']} cores"])
    cache = found["kernel_cache"]
    state = "" if cache["writable"] else "; not writable: every process compiles the kernels again, set NUMBA_CACHE_DIR"
    size = f"{cache['kernels']} kernels, {cache['bytes'] / 1e6:.1f} MB"
    rows.append(["kernel cache", f"{cache['folder'] or 'none'}: {size}{state}"])
    rows += [[f"data: {name}", where or f"missing: dpcml data fetch {name}"] for name, where in found["data"].items()]
    for name, missing in found["extras"].items():
        how = f"without {', '.join(missing)}: {install_command(name)}" if missing else "installed"
        rows.append([f"extra: {name}", how])
    show_table("dpcml doctor", ["what", "state"], rows)
