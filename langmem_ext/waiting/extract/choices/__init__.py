"""One of a few values: yes or no, and a parameter's allowed values."""
