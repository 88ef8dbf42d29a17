"""What may go, and its removal."""
