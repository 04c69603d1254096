"""Training: the loop over epochs, the engine, samplers, initial vectors, checkpoints and progress."""
