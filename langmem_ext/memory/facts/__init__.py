"""Facts: what an owner said that lasts, across threads."""
