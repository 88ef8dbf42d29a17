"""The open database: values to rows and back, restore policy, and retention."""
