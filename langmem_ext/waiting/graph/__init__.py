"""The waiting graph: how it is put together, its nodes, what they report, who answers questions."""
