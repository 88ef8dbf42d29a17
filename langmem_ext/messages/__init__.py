"""Pure functions on messages: identity, manifests, pairing, text, tokens. No clock, no randomness, no I/O."""
