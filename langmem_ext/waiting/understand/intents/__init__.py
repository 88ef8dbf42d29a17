"""Which request a message makes."""
