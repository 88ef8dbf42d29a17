"""`python -m langmem_ext.cli`: the same as the console script."""

from __future__ import annotations

from langmem_ext.cli import main

main()
