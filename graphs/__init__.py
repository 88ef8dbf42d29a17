"""Example graphs: what `langgraph.json` points at."""
