"""Evaluation: ranks once, then every metric from the ranks."""
