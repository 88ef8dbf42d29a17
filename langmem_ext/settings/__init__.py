"""Settings, where each comes from, and what is invalid.

It is the only package that needs the extra `settings`.

An argument counts for more than the environment, that for more than the project's file, that for
more than the user's file, and a default for least. Nothing below reads settings by itself: who
opens a database hands over what it is to be opened with.
"""

from __future__ import annotations

from langmem_ext._internal.extras import require

# Here, because every module of this package comes after it.
require("Settings", "settings")
