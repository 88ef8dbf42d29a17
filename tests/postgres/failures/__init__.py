"""Servers that fail, and the servers that tests make for it."""
