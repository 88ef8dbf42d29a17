"""What the package promises, one file a topic, on its public API."""
