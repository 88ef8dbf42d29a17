"""Summaries of messages that are left out."""
