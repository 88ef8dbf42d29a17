"""What is left out of a request so that it fits."""
