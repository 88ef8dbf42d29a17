"""What a session remembers besides its messages."""
