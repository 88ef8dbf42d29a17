"""What a message says: read once, whole, into a short list of commands. Pure; English."""
