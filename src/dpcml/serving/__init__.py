"""A trained model as an HTTP service, with a web page to explore it."""
