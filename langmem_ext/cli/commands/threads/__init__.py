"""The commands on threads: lists, searches, reading, export and import."""
