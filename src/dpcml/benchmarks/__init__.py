"""Speed as ratios measured within one run, because machines are noisy."""
