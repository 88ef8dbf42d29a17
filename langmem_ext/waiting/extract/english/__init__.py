"""English: word classes, tokens, and what a person says besides a value."""
