"""The command line: reads arguments, calls the package, prints. Data goes to stdout, notes to stderr.

This module runs without the extra `cli`, to say what is missing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec

from langmem_ext.errors import MissingExtra

_NEEDED = ("platformdirs", "prompt_toolkit", "pydantic_settings", "rich", "typer")


def main() -> None:
    """The console script `langmem-ext`."""
    if any(find_spec(name) is None for name in _NEEDED):
        print(f"langmem-ext: {MissingExtra('the command line', 'cli')}", file=sys.stderr)
        sys.exit(2)
    # Imported here: its module needs the extra.
    import_module("langmem_ext.cli.app").app(prog_name="langmem-ext")
