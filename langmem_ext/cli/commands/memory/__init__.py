"""The commands on what is remembered across threads."""
