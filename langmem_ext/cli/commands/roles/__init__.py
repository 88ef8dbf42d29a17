"""The commands on roles of a PostgreSQL server."""
