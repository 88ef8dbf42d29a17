"""The driver for PostgreSQL: what needs psycopg (extra `postgres`)."""
