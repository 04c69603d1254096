"""The paths of the server, one file per kind."""
