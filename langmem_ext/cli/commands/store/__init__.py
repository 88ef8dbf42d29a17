"""The commands on the long-term store."""
