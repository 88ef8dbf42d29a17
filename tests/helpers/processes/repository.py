"""Where the repository is, however deep a test lies in it."""

from pathlib import Path

ROOT = Path(__file__).parents[3]
