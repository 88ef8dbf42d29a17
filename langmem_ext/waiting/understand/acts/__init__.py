"""What a user does besides giving values and asking for things. English; pure."""
