"""The command line: reads arguments, calls the package, prints. Data goes to stdout, notes to stderr.

This module runs without the extra `cli`, to say what is missing.
"""

from __future__ import annotations

import sys
from importlib import import_module

from langmem_ext.errors import MissingExtra
from langmem_ext.extras import require


def main() -> None:
    """The console script `langmem-ext`."""
    try:
        require("the command line", "cli")
    except MissingExtra as error:
        print(f"langmem-ext: {error}", file=sys.stderr)
        sys.exit(2)
    # Imported here: its module needs the extra.
    import_module("langmem_ext.cli.app").app(prog_name="langmem-ext")
