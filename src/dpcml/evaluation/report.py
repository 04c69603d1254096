"""`Report`: the metrics of one evaluation, with protocol, split and parameters."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcml.utils.arrays import Array, FloatArray
from dpcml.utils.errors import DataError
from dpcml.utils.files import atomic, write_text
from dpcml.utils.text import text_table

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class Report:
    """Metrics of one model on one split under one protocol.

    Parameters
    ----------
    label
        The model's name in tables.
    model, parameters
        Its name and hyper-parameters.
    protocol
        The name of the protocol: ``text``, ``released`` or ``strict``.
    split
        Hash of the split that was evaluated.
    masked
        Parts whose positives were no candidates.
    n_users
        Users with held-out items; a metric may count fewer of them, see ``counted``.
    metrics
        Mean of each metric, as a fraction; NaN where no user counts.
    counted
        How many users each metric is the mean of.
    categories
        MAP by category, where items have attributes.
    version
        The version of dpcml.
    seconds
        How long the evaluation took.
    users
        External ids of the evaluated users.
    per_user
        Values of each metric, parallel to ``users``; NaN where a user does not count.

    Examples
    --------
    >>> report = Report("ease", "ease", {"l2": 1.0}, "strict", "abc", ("train",), 2, {"P@3": 0.5}, {"P@3": 2})
    >>> print(report)
    ease on split abc, protocol strict, 2 users
    metric   value  users
    ---------------------
    P@3     0.5000      2
    """

    label: str
    model: str
    parameters: dict[str, Any]
    protocol: str
    split: str
    masked: tuple[str, ...]
    n_users: int
    metrics: dict[str, float]
    counted: dict[str, int] = field(default_factory=dict)
    categories: dict[str, float] = field(default_factory=dict)
    version: str = ""
    seconds: float = 0.0
    users: Array | None = None
    per_user: Mapping[str, FloatArray] = field(default_factory=dict)

    def __str__(self) -> str:
        rows = [[name, f"{value:.4f}", f"{self.counted.get(name, '')}"] for name, value in self.metrics.items()]
        rows += [[f"MAP {name}", f"{value:.4f}", ""] for name, value in self.categories.items()]
        head = f"{self.label} on split {self.split}, protocol {self.protocol}, {self.n_users:,} users"
        return head + "\n" + text_table(["metric", "value", "users"], rows)

    def to_dict(self, *, per_user: bool = False) -> dict[str, Any]:
        """Return the report as plain data for JSON; undefined values are None."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("users", "per_user")}
        plain["masked"] = list(self.masked)
        if per_user and self.users is not None:
            plain["users"] = self.users.tolist()
            plain["per_user"] = {name: values.tolist() for name, values in self.per_user.items()}
        defined: dict[str, Any] = _defined(plain)
        return defined

    def to_json(self, path: str | Path | None = None, *, per_user: bool = False) -> str:
        """Return the report as JSON, and write it to ``path`` if one is given."""
        text = json.dumps(self.to_dict(per_user=per_user), indent=2, default=str, allow_nan=False)
        if path is not None:
            write_text(path, text + "\n")
        return text

    @classmethod
    def from_json(cls, source: str | Path) -> Report:
        """Read a report that `to_json` wrote: a path, or the text itself.

        Examples
        --------
        >>> report = Report("a", "a", {}, "text", "abc", ("train",), 1, {"MAP": float("nan")})
        >>> Report.from_json(report.to_json()).metrics
        {'MAP': nan}
        """
        text = str(source)
        try:
            if not text.lstrip().startswith("{"):
                text = Path(source).read_text(encoding="utf-8")
            found = json.loads(text)
            for name in ("metrics", "categories"):
                found[name] = {key: math.nan if value is None else value for key, value in found[name].items()}
            found["masked"] = tuple(found["masked"])
            if "users" in found:
                found["users"] = np.array(found["users"], dtype=object if isinstance(found["users"][0], str) else None)
                found["per_user"] = {key: np.array(values, np.float64) for key, values in found["per_user"].items()}
            return cls(**found)
        except OSError as error:
            raise DataError(f"{source}: cannot be read ({error.strerror}); pass a report written by to_json") from None
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise DataError(
                f"{str(source)[:80]}: not a report of dpcml ({error}); pass one written by to_json"
            ) from None

    def share_of(self, other: Report) -> dict[str, float]:
        """Return the metrics as shares of another report's, such as that of the oracle of a planted world.

        Only metrics of both reports are compared; NaN where the other's is 0 or undefined.

        Examples
        --------
        >>> model = Report("ease", "ease", {}, "strict", "abc", ("train",), 2, {"R@10": 0.3})
        >>> oracle = Report("oracle", "oracle", {}, "strict", "abc", ("train",), 2, {"R@10": 0.5})
        >>> model.share_of(oracle)
        {'R@10': 0.6}
        """
        for name in ("protocol", "split", "masked"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise DataError(f"{name} {mine} and {theirs}: shares need two reports of the same {name}")
        both = [name for name in self.metrics if name in other.metrics]
        return {name: self.metrics[name] / (other.metrics[name] or math.nan) for name in both}

    def to_frame(self) -> pl.DataFrame:
        """Return one row per metric, each with label, protocol, split and version.

        Examples
        --------
        >>> report = Report("ease", "ease", {}, "strict", "abc", ("train",), 2, {"P@3": 0.5}, {"P@3": 2})
        >>> report.to_frame().select("label", "protocol", "metric", "value", "users").rows()
        [('ease', 'strict', 'P@3', 0.5, 2)]
        """
        import polars as pl

        names = list(self.metrics)
        said = {key: getattr(self, key) for key in ("label", "model", "protocol", "split", "version")}
        return pl.DataFrame(
            {
                **{key: [value] * len(names) for key, value in said.items()},
                "metric": names,
                "value": list(self.metrics.values()),
                "users": [self.counted.get(name) for name in names],
            }
        )

    def per_user_frame(self) -> pl.DataFrame:
        """Return one row per evaluated user with every metric; undefined values are null.

        Examples
        --------
        >>> values = {"P@3": np.array([0.5, np.nan])}
        >>> report = Report("a", "a", {}, "text", "abc", (), 2, {}, users=np.array([7, 9]), per_user=values)
        >>> report.per_user_frame().rows()
        [(7, 0.5), (9, None)]
        """
        import polars as pl

        ids = [] if self.users is None else self.users.tolist()
        return pl.DataFrame({"user_id": ids, **self.per_user}).fill_nan(None)

    def to_csv(self, path: str | Path) -> None:
        """Write `to_frame` as CSV."""
        with atomic(path) as temporary:
            self.to_frame().write_csv(temporary)

    def to_parquet(self, path: str | Path) -> None:
        """Write `to_frame` as Parquet."""
        with atomic(path) as temporary:
            self.to_frame().write_parquet(temporary)


def _defined(value: Any) -> Any:
    """Return plain data with None in place of NaN and infinities, which JSON does not have."""
    if isinstance(value, Mapping):
        return {key: _defined(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_defined(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
