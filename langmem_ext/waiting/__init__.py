"""The graph that asks for missing parameters, waits, and continues. It needs extra `waiting`."""

from __future__ import annotations

from langmem_ext._internal.extras import require

# Here, because every module of this package comes after it.
require("the waiting graph", "waiting")
