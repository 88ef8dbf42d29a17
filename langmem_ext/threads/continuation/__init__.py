"""A thread in the hands of one tool or agent after another."""
