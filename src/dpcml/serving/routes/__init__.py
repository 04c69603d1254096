"""The HTTP routes: recommendations, exploration of the data, state of the server."""
