"""What is tried here begins in a folder of its own."""

from current_folder import folder

__all__ = ["folder"]
