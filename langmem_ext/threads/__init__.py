"""Conversations as people handle them: lists, search, sessions, chat history, export and import."""
