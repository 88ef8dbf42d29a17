"""The LangGraph checkpointer: checkpoints as plain values, its calls as operations."""
