"""Numbers: counts, sums, lengths of time, groups of people."""
