"""The waiting-for-param graph: classify, ask the user, wait, continue where it stopped. It needs the extra `waiting`."""

from __future__ import annotations

from langmem_ext.extras import require

# Here, because every module of this package comes after it.
require("the waiting graph", "waiting")
