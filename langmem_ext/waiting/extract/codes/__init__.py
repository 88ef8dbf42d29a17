"""Codes: identifiers, e-mail addresses, telephone numbers."""
