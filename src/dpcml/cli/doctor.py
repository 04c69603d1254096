"""``dpcml doctor``: what is installed, where data and compiled kernels lie, and what is missing."""

from __future__ import annotations

from dpcml.cli.asking import show_table
from dpcml.cli.console import AsJson, print_json


def doctor(as_json: AsJson = False) -> None:
    """Check versions, threads, the kernel cache, data folders and extras."""
    from dpcml.installation import examine

    found = examine()
    if as_json:
        print_json(found)
        return
    rows = [["python", found["python"]], ["dpcml", found["dpcml"]]]
    rows += [[name, version or "missing"] for name, version in found["packages"].items()]
    rows.append(["threads", f"{found['threads']} of {found['cores']} cores"])
    cache = found["kernel_cache"]
    state = "" if cache["writable"] else "; not writable: kernels compile anew each time, set NUMBA_CACHE_DIR"
    size = f"{cache['kernels']} kernels, {cache['bytes'] / 1e6:.1f} MB"
    rows.append(["kernel cache", f"{cache['folder']}: {size}{state}"])
    rows += [[f"data: {name}", where or f"not here: dpcml data fetch {name}"] for name, where in found["data"].items()]
    for name, missing in found["extras"].items():
        how = f"without {', '.join(missing)}: pip install 'dpcml[{name}]'" if missing else "installed"
        rows.append([f"extra: {name}", how])
    show_table("dpcml doctor", ["what", "state"], rows)
