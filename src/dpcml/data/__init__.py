"""Data in: interactions, readers, named sets, splits and the planted world."""
