"""The SQL of statistics: counts and lengths, never a content."""

from __future__ import annotations

from langmem_ext.storage.compression import HEAD_BYTES
from langmem_ext.storage.dialect import BEHIND, HAS_SIZES, KEY, PAGES, SIZES, bytes_of
from langmem_ext.storage.statements import CHECKPOINT_COLUMNS, WRITE_COLUMNS

COUNT_ROWS = (
    "SELECT (SELECT count(*) FROM thread), (SELECT count(*) FROM checkpoint), (SELECT count(*) FROM pending_write),"
    " (SELECT count(*) FROM item), (SELECT count(*) FROM value)"
)
SELECT_PAGES = PAGES
HAS_PAGE_TABLE = HAS_SIZES
SUM_PAGES = SIZES
SELECT_THREADS = "SELECT number, id FROM thread WHERE number > :after ORDER BY number LIMIT :limit"

# -- lengths of a thread's rows ----------------------------------------------------------------------------------------------------------

_TEXT = f"coalesce({bytes_of('text')}, 0)"
_NAMES = f"coalesce(length(message_id), 0) + coalesce({bytes_of('name')}, 0) + coalesce({bytes_of('tool_call_id')}, 0)"
# The beginning of what is compressed tells how long it was.
_TEXT_HEAD = f"CASE WHEN text <> CAST(text AS TEXT) THEN substr(text, 1, {HEAD_BYTES}) END"
_REST_HEAD = f"CASE WHEN substr(rest, 1, 1) = :mark THEN substr(rest, 1, {HEAD_BYTES}) END"
_BODY_HEAD = f"CASE WHEN substr(body, 1, 1) = :mark THEN substr(body, 1, {HEAD_BYTES}) END"
SELECT_ITEM_SIZES = (
    f"SELECT {KEY}, role, {_TEXT}, coalesce(length(rest), 0), {_NAMES}, rest IS NULL AND role IS NULL, {_TEXT_HEAD}, {_REST_HEAD}"
    f" FROM item WHERE {BEHIND} ORDER BY {KEY} LIMIT :limit"
)
SELECT_VALUE_SIZES = f"SELECT {KEY}, length(body), {_BODY_HEAD} FROM value WHERE {BEHIND} ORDER BY {KEY} LIMIT :limit"
SELECT_CHECKPOINTS = (
    f"SELECT namespace, {CHECKPOINT_COLUMNS} FROM checkpoint"
    " WHERE thread = :thread AND (namespace, id) > (:namespace, :after) ORDER BY namespace, id LIMIT :limit"
)
SELECT_WRITES = (
    f"SELECT {WRITE_COLUMNS} FROM pending_write"
    " WHERE thread = :thread AND (namespace, checkpoint, task) > (:namespace, :after, :task)"
    " ORDER BY namespace, checkpoint, task LIMIT :limit"
)
SUM_WORDS = "SELECT coalesce(sum(length(body)), 0) FROM word WHERE thread = :thread"
