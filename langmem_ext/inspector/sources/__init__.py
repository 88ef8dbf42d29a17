"""The databases that the inspector opens: this package's, and LangGraph's own savers'."""
