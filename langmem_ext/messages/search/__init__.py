"""What a search compares, and where it is in a text."""
