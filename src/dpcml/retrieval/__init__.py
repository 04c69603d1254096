"""From vectors and scores to lists: pure functions over arrays, below models and above kernels."""
