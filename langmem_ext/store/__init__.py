"""LangGraph's long-term store on the database that holds the threads."""
