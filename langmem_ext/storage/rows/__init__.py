"""Row formats: what a checkpoint, a message and a large value look like as bytes. No SQL."""
