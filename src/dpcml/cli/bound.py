"""``dpcml bound``: the paper's generalisation bound for a saved model, and its measured gap."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcml.cli.console import AsJson, bytes_bar
from dpcml.cli.options import DataNow, Folder, takes_reading
from dpcml.utils.errors import DataError
from dpcml.utils.text import text_table

if TYPE_CHECKING:
    from dpcml.theory import Bound, ObjectiveGap


@takes_reading
def bound(
    folder: Folder,
    data: DataNow = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample of users, for data with too many.")] = 0,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Print the paper's generalisation bound term by term, and the objective on training and test positives.

    For dpcml, cml and gfja. Only the bound is printed without a test part (trained with --all, or data not found).
    """
    from dpcml.storage import load
    from dpcml.theory import bound_of, gap
    from dpcml.workflow import evaluated_folder, split_again

    model = load(evaluated_folder(folder))
    found, measured, reason = bound_of(model), None, None
    try:
        with bytes_bar(str(folder)) as progress:
            split = split_again(folder, data=data, options=reading, progress=progress)
    except DataError as error:
        if data is not None:
            raise
        reason = str(error)
    else:
        measured = gap(model, split.test, also_liked=split.valid, seed=seed)
    if as_json:
        plain = {"out": str(folder), "model": model.name, "data_hash": model.train_.content_hash, **found.to_dict()}
        told = None if measured is None else measured.to_dict()
        print(json.dumps({**plain, "gap": told, "no_gap": reason}, allow_nan=False))
        return
    _show_bound(found)
    if measured is not None:
        _show_gap(measured)
    else:
        print(f"\nno gap: {reason}")


def _show_bound(found: Bound) -> None:
    total = found.user_term + found.positive_term + found.negative_term
    power = found.log_failure / math.log(10)
    rows = [
        ["users |U|", f"{found.n_users:,}"],
        ["dimension d", f"{found.dim}"],
        ["radius r", f"{found.radius:g}"],
        ["weight eta", f"{found.weight:g}"],
        ["(4 + eta)^2 / |U|", f"{found.user_term:.4g}"],
        ["2 / |U|^2 * sum 1/n+", f"{found.positive_term:.4g}"],
        ["2 / |U|^2 * sum 1/n-", f"{found.negative_term:.4g}"],
        ["their sum", f"{total:.4g}"],
        ["N~ = 1 / (16 r^4 sum)", f"{found.effective_size:.4g}"],
        ["bound sqrt(2 d log(3 r N~) / N~)", f"{found.value:.4g}"],
        ["no gap can exceed", f"{found.largest_gap:.4g}"],
        ["failure probability at most", "undefined" if math.isinf(power) else f"10^{power:.1f}"],
    ]
    print(text_table(["the bound", "value"], rows))
    print(f"vacuous: {found.vacuous}" if found.vacuous else f"holds with probability {1 - found.failure:.6f} or more")


def _show_gap(measured: ObjectiveGap) -> None:
    parts = {"training": measured.train, "test": measured.held_out}
    rows = [
        [name, f"{one.risk:.4f}", f"{one.weight:g} * {one.diversity:.4f}", f"{one.value:.4f}"]
        for name, one in parts.items()
    ]
    print("\n" + text_table(["positives", "risk", "eta * psi", "objective"], rows))
    users = f"all {measured.n_users:,} users with both"
    if measured.seed is not None:
        users = f"{measured.n_users:,} of {measured.users_with_both:,} users, drawn with seed {measured.seed}"
    print(f"gap {measured.value:.4f} over all pairs of {users}")
