"""The tables, and their SQL for SQLite and PostgreSQL."""
