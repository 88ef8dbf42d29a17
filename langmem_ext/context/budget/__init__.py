"""How many tokens a request may have: windows, counters, and what providers refuse."""
