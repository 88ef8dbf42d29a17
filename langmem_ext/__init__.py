"""Conversation memory for LangGraph and LangChain: every message stored once, one log, many views."""

__version__ = "0.1.0"
