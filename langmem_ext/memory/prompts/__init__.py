"""Prompts: what a model is told that writes a memory, and memories in prompts."""
