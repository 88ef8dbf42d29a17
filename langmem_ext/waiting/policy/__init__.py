"""What follows from a message: the request's plan, its questions and its tool calls.

Pure functions.
"""
