"""The SQL of statistics: counts and lengths, never a content."""

from __future__ import annotations

from langmem_ext.storage.rows.message import HUMAN_CODES
from langmem_ext.storage.schema.dialect import HAS_SIZES, OF_THREAD, PAGES, SIZES, bytes_of

COUNT_ROWS = (
    "SELECT (SELECT count(*) FROM thread), (SELECT count(*) FROM checkpoint),"
    " (SELECT count(*) FROM pending_write), (SELECT count(*) FROM item),"
    " (SELECT count(*) FROM value)"
)
SELECT_PAGES = PAGES
HAS_PAGE_TABLE = HAS_SIZES
SUM_PAGES = SIZES
SELECT_THREADS = "SELECT number, id FROM thread WHERE number > :after ORDER BY number LIMIT :limit"

# A row with neither role nor rest is not a message yet.
MEASURE_MESSAGES = (
    f"SELECT coalesce(sum({bytes_of('text')}), 0), coalesce(sum(length(rest)), 0),"
    " count(CASE WHEN role IS NOT NULL OR rest IS NOT NULL THEN 1 END),"
    f" count(CASE WHEN role IN {HUMAN_CODES} THEN 1 END) FROM item WHERE {OF_THREAD}"
)
