"""The command line reads arguments, calls the package and prints.

Data goes to stdout, notes to stderr.

This module runs without the extra `cli`, to say what is missing.
"""

from __future__ import annotations

import sys
from importlib import import_module

from langmem_ext._internal.extras import require
from langmem_ext.errors import MissingExtra


def main() -> None:
    """The console script `langmem-ext`."""
    try:
        require("the command line", "cli")
    except MissingExtra as error:
        print(f"langmem-ext: {error}", file=sys.stderr)
        sys.exit(2)
    # Imported here: its module needs the extra.
    import_module("langmem_ext.cli.app").app(prog_name="langmem-ext")
