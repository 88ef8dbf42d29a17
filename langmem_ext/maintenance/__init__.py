"""Doctor, statistics, and moving between savers."""
