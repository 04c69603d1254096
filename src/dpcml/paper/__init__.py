"""Studies: from data and models to tables, files and pictures."""
