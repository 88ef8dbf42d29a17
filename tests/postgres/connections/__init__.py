"""Connections to a server: lent, kept at hand, cut, refused, and closed."""
