"""The tables, and the two dialects of SQL that they are written in."""
