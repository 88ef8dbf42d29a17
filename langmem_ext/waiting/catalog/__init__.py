"""The catalog: what users can ask for, which parameters that takes, and the tools that do it."""
