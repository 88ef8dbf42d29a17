"""Settings, where each comes from, and which are invalid.

It is the only package that needs the extra `settings`.

An argument takes precedence over the environment, that over the project's file, that over the
user's file, and a default comes last. No lower package reads settings: a caller that opens a
database passes its options.
"""

from __future__ import annotations

from langmem_ext._internal.extras import require

# Here, because every module of this package comes after it.
require("Settings", "settings")
