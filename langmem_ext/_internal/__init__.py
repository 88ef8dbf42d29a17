"""Small things that several packages need, and no user."""
