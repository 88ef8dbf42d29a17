"""How statements travel to a PostgreSQL server, many in one trip."""
