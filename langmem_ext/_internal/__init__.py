"""Small things that several packages need, but no user."""
