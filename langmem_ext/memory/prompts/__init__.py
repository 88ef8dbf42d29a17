"""Prompts: the instructions of a model that writes memories, and memories in prompts."""
