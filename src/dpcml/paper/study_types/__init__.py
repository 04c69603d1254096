"""Types of studies, found by name in `STUDY_TYPES`."""

from dpcml.paper.study_types import curves, interests, tables, timing
from dpcml.paper.study_types.base import STUDY_TYPES, StudyResults, StudyType

__all__ = ["STUDY_TYPES", "StudyResults", "StudyType", "curves", "interests", "tables", "timing"]
