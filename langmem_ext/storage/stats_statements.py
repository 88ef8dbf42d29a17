"""The SQL of statistics: counts and lengths, never a content."""

from __future__ import annotations

from langmem_ext.storage.compression import HEAD_BYTES
from langmem_ext.storage.statements import CHECKPOINT_COLUMNS, WRITE_COLUMNS

COUNT_ROWS = (
    "SELECT (SELECT count(*) FROM thread), (SELECT count(*) FROM checkpoint), (SELECT count(*) FROM pending_write),"
    " (SELECT count(*) FROM item), (SELECT count(*) FROM value)"
)
SELECT_PAGES = "SELECT (SELECT page_size FROM pragma_page_size), page_count, freelist_count FROM pragma_page_count, pragma_freelist_count"
HAS_PAGE_TABLE = "SELECT 1 FROM pragma_module_list WHERE name = 'dbstat'"
SUM_PAGES = "SELECT name, sum(pgsize) FROM dbstat WHERE aggregate = TRUE GROUP BY name"
SELECT_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"
SELECT_THREADS = "SELECT number, id FROM thread WHERE number > :after ORDER BY number LIMIT :limit"

# -- lengths of a thread's rows ----------------------------------------------------------------------------------------------------------

_TEXT = "coalesce(length(CAST(text AS BLOB)), 0)"
_NAMES = "coalesce(length(message_id), 0) + coalesce(length(CAST(name AS BLOB)), 0) + coalesce(length(CAST(tool_call_id AS BLOB)), 0)"
# The beginning of what is compressed tells how long it was.
_TEXT_HEAD = f"CASE WHEN typeof(text) = 'blob' THEN substr(text, 1, {HEAD_BYTES}) END"
_REST_HEAD = f"CASE WHEN substr(rest, 1, 1) = x'C1' THEN substr(rest, 1, {HEAD_BYTES}) END"
_BODY_HEAD = f"CASE WHEN substr(body, 1, 1) = x'C1' THEN substr(body, 1, {HEAD_BYTES}) END"
SELECT_ITEM_SIZES = (
    f"SELECT key, role, {_TEXT}, coalesce(length(rest), 0), {_NAMES}, rest IS NULL AND role IS NULL, {_TEXT_HEAD}, {_REST_HEAD}"
    " FROM item WHERE key > :after AND key < :high ORDER BY key LIMIT :limit"
)
SELECT_VALUE_SIZES = f"SELECT key, length(body), {_BODY_HEAD} FROM value WHERE key > :after AND key < :high ORDER BY key LIMIT :limit"
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
