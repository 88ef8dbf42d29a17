"""Storing and reading checkpoints and pending writes."""
