"""What happened to the rows of a source on their way to positives."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Preparation:
    """What was done to the rows of a source before they became positives."""

    rows: int = 0  # rows in the source
    below_rating: int = 0  # rows under the rating threshold
    duplicates: int = 0  # further rows of a (user, item) pair
    users_dropped: int = 0  # users with too few positives
    items_dropped: int = 0  # items with too few positives (k-core), or left without any
    notes: tuple[str, ...] = ()  # what a reader guessed or found

    def lines(self) -> list[str]:
        """Return the report as lines of text; steps that changed nothing are left out."""
        counts = {
            "rows below the rating threshold": self.below_rating,
            "duplicate rows collapsed": self.duplicates,
            "users dropped, too few positives": self.users_dropped,
            "items dropped, too few positives": self.items_dropped,
        }
        return [*self.notes, *(f"{name}: {count:,}" for name, count in counts.items() if count)]
