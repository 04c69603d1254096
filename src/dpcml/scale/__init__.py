"""Beyond one machine: files larger than memory, and training, lists and evaluation on Ray."""

from dpcml.scale.ingestion import ingest as ingest
from dpcml.scale.lists import write_parts as write_parts
from dpcml.scale.ranking import RayRanking as RayRanking
from dpcml.scale.runner import RayRunner as RayRunner
