"""The inspector shows a database of conversations on pages that work offline.

`langmem-ext inspect` opens it; `inspector_router` mounts it in an application.
"""

from __future__ import annotations

from langmem_ext._internal.extras import require

require("the inspector", "server")  # before what imports it

from langmem_ext.inspector.router import inspector_router  # noqa: E402

__all__ = ["inspector_router"]
