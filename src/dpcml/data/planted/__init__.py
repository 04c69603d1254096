"""A generated world with known majority and minority interests."""

from dpcml.data.planted.parameters import PlantedParameters
from dpcml.data.planted.world import PlantedTruth, PlantedWorld, planted, planted_blocks

__all__ = ["PlantedParameters", "PlantedTruth", "PlantedWorld", "planted", "planted_blocks"]
