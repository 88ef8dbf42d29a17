"""The other commands: threads, search, transfer, upkeep, inspection, store, roles."""
