"""The database: operations, statements, schema and drivers. Knows nothing of LangGraph."""
