"""Long outputs of tools, and how a model reads the rest of them."""
