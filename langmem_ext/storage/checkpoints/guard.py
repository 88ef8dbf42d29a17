"""The guard: what happens when two processes write one thread.

Every write of a thread moves `version` in the thread's row, if the row still has the version that
this process remembers. The guard is the first change of the transaction. If another process has
written meanwhile it matches no row: the operation is `Stale`, all of it is rolled back, and the
driver runs it again, which now reads the thread anew (`storage.driver`).
"""

from __future__ import annotations

from typing import Final

# Never earlier than before: a thread written by a process whose clock is behind must not look idle
# and expire.
_WRITTEN: Final = "updated_at = CASE WHEN updated_at > ?2 THEN updated_at ELSE ?2 END"
_GUARD: Final = (
    f"UPDATE thread SET version = ?1, {_WRITTEN}, generation = ?3, next_item = ?4, next_value = ?5,"
    " next_word = ?6, next_namespace = ?7, indexed = ?8, items = items + ?9, tokens = tokens +"
    " ?10{more} WHERE number = ?11 AND version = ?12"
)
GUARD = _GUARD.format(more="")
"""Writes a thread's counters, and moves its version; changes nothing if the thread is not as it is
cached."""
GUARD_HEAD = _GUARD.format(more=", head_messages = ?13, waiting_for = ?14")
