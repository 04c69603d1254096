"""What every room uses: errors, checks, files, threads, registries, tables."""
