"""Messages as a provider takes them."""
