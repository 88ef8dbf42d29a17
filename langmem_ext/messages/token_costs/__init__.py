"""How many tokens messages take."""
