"""The drives of a run: the bay that has them, the spec of each, and whether they are the expected ones."""
