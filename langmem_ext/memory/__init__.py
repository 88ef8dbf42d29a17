"""Conversation memory: what was talked about, and what an owner said that lasts, in a store."""
