"""Training: negatives, the engine, the loop over epochs, checkpoints and progress."""
