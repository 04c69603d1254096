"""Readers: files of many formats become `Interactions`; each format is a file of its own here."""

from dpcml.data.readers.base import READERS, Options, Parsed, Reader
from dpcml.data.readers.lists import Lists
from dpcml.data.readers.movielens import MovieLens
from dpcml.data.readers.parquet import Parquet
from dpcml.data.readers.reading import read
from dpcml.data.readers.steam import Steam
from dpcml.data.readers.tables import Tables
from dpcml.data.readers.text import Source
from dpcml.data.readers.titles import read_items

__all__ = [
    "READERS",
    "Lists",
    "MovieLens",
    "Options",
    "Parquet",
    "Parsed",
    "Reader",
    "Source",
    "Steam",
    "Tables",
    "read",
    "read_items",
]
