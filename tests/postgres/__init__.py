"""What tests of the PostgreSQL driver need: a shared server, clusters of their own, PgBouncer, and
tests of these parts themselves.
"""
