"""Speed of dpcml, as ratios within one run: ``python -m benchmarks --help``."""
