"""Threads out of a database and into one, as JSON lines or Markdown."""
