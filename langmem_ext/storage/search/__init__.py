"""The full-text index: kept up, and searched."""
