"""The commands on a catalog of intents."""
