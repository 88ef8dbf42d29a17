"""What is in the tables, who may see it, and the statements that read it."""
