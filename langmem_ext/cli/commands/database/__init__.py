"""The commands on a whole database: expiry, checks, statistics, imports."""
