"""Shared helpers: errors, checks, files, threads, registries, text formats."""
