"""Pure functions on messages: identity, manifests, text, tokens. No clock, no randomness, no I/O."""
