"""A model behind HTTP: an application from a factory, and a page to look at what the model knows of people."""
