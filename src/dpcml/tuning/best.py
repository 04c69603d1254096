"""The best settings of a search, as a file that ``dpcml train --config`` takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpcml.tuning.search import Tuned
from dpcml.utils.files import write_text
from dpcml.utils.packages import version
from dpcml.utils.text import toml_text


def write_best(
    path: str | Path, found: Tuned, *, data: str, seed: int, split_seed: int, reading: Mapping[str, Any] | None = None
) -> None:
    """Write the best settings with a word on where they come from.

    Parameters
    ----------
    path
        A TOML file.
    found
        What `dpcml.tuning.search.tune` returned.
    data, reading
        The data in words that find it again, and how it was read.
    seed, split_seed
        Of the models, and of the split.
    """
    said = [
        f"{found.metric} {found.best_value:.6f} on the validation part (released protocol), split {found.split}",
        f"best of {found.trials} trials, dpcml {version()}",
    ]
    if reading:
        options = " ".join(f"{name}={value}" for name, value in reading.items())
        said.append(f"the file was read with {options}: give the same options to dpcml train")
    settings = {"data": data, "model": found.model, "seed": seed, "split_seed": split_seed}
    head = "".join(f"# {line}\n" for line in said)
    write_text(path, f"{head}{toml_text({**settings, 'parameters': found.best_parameters})}\n")
