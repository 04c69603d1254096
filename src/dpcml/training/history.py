"""What happened in each epoch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Epoch:
    """One epoch of training."""

    number: int  # from 1
    loss: float  # mean hinge per positive, before each batch's step
    rate: float  # learning rate
    seconds: float
    validation: float | None = None  # the figure that early stopping watches, where it was computed


@dataclass
class History:
    """All epochs so far, and the best of them."""

    metric: str | None = None  # what ``validation`` is
    epochs: list[Epoch] = field(default_factory=list)

    @property
    def best(self) -> Epoch | None:
        """The earliest epoch with the highest validation figure; the last one where none was computed.

        Examples
        --------
        >>> history = History("P@3", [Epoch(1, 0.9, 0.01, 1.0, 0.2), Epoch(2, 0.8, 0.01, 1.0, 0.1)])
        >>> history.best.number
        1
        """
        judged = [epoch for epoch in self.epochs if epoch.validation is not None]
        if judged:
            return max(judged, key=lambda epoch: (epoch.validation or 0.0, -epoch.number))
        return self.epochs[-1] if self.epochs else None

    @property
    def seconds(self) -> float:
        """Time spent in epochs, validation apart."""
        return sum(epoch.seconds for epoch in self.epochs)

    def to_dict(self) -> dict[str, Any]:
        """Return the history as plain data."""
        return {"metric": self.metric, "epochs": [asdict(epoch) for epoch in self.epochs]}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> History:
        """Return the history that `to_dict` gave."""
        return cls(plain["metric"], [Epoch(**epoch) for epoch in plain["epochs"]])
