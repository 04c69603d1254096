"""Compiled loops: arrays and numbers in, arrays out; no classes, no files, no global state."""
