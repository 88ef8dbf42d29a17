"""Free texts: what a parameter asks for, and the words of a message that say it."""
