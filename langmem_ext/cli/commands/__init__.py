"""The other commands: threads, search, transfer, upkeep, inspection, roles."""
