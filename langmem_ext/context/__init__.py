"""What of a conversation goes to the model: valid, within its budget, the same from turn to turn, and nothing stored is lost for it."""
