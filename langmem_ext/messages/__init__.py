"""Pure functions on messages: identity, manifests, pairing, text, tokens.

They use no clock, no randomness and no I/O.
"""
