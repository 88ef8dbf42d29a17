"""The state that a thread is in, read without its graph."""
