"""What an interrupt takes as an answer, whoever's graph it is in."""
