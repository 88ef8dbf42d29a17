"""The SQL of threads as a list: their own rows alone, no message and no checkpoint."""

from __future__ import annotations

from typing import Final

from langmem_ext.storage.checkpoints.sql import OWNED
from langmem_ext.storage.rows.clock import FIRST_MS, LAST_MS
from langmem_ext.storage.schema.dialect import FOR_UPDATE, INSTR, LIKE, OF_ID, UNINDEXED

LISTED: Final = (
    "number, id, owner, title, status, created_at, updated_at, head_messages, items, tokens,"
    " waiting_for, tool, tags, metadata, forked_from"
)
SELECT_LISTED = f"SELECT {LISTED} FROM thread WHERE {OF_ID} AND {OWNED}"
LOCK_LISTED = f"{SELECT_LISTED} {FOR_UPDATE}"
# A damaged row may have an invalid time: lists go on without it, and the doctor reports it.
SOUND: Final = (
    f"created_at BETWEEN {FIRST_MS} AND {LAST_MS} AND updated_at BETWEEN {FIRST_MS} AND {LAST_MS}"
    " AND (tags IS NULL OR tags = CAST(tags AS TEXT))"
)
STATUS: Final = "status = :status"
STATUS_OF_FEW: Final = f"{UNINDEXED}status = :status"
"""The same, but not by its index."""
NEWEST_FIRST: Final = "active_at DESC, number DESC"
"""By the minute, as the indexes are, and in it by the number."""
WITHIN: Final = "active_at = :minute"
BEFORE: Final = "number < :number"
EARLIER: Final = "active_at < :minute"
NEVER: Final = 1 << 40
"""Later than any minute."""

SELECT_ANY_ITEM = "SELECT 1 FROM store_item LIMIT 1"
SELECT_OWNED = "SELECT id FROM thread WHERE owner = :owner LIMIT :limit"
SELECT_PAGE = f"SELECT {LISTED} FROM thread{{where}} ORDER BY {NEWEST_FIRST} LIMIT :limit"
RANKS: Final = {"stored_messages": "items", "tokens": "tokens"}
"""What threads are ranked by, and its column. It is not indexed: every row that matches is read."""
RANKED_AFTER: Final = "({column}, number) < (:rank, :number)"
SELECT_RANKED = (
    f"SELECT {LISTED} FROM thread{{where}} ORDER BY {{column}} DESC, number DESC LIMIT :limit"
)
PICK_PAGE = f"SELECT {LISTED} FROM thread{{where}} ORDER BY {{order}} LIMIT :limit OFFSET :offset"
ORDERS: Final = {
    "updated_at desc": "active_at DESC, updated_at DESC, number DESC",
    "updated_at asc": "active_at, updated_at, number",
    "created_at desc": "created_at DESC, number DESC",
    "created_at asc": "created_at, number",
    "id desc": "id DESC",
    "id asc": "id",
}
"""By the minute first, if an index has that."""
COUNT_PAGE = "SELECT count(*) FROM thread{where}"
CONDITIONS: Final = {
    "owner": "owner = :owner",
    "waiting_for": "waiting_for = :waiting_for",
    "waiting": "waiting_for IS NOT NULL",
    "resting": "waiting_for IS NULL",
    "pending": "(waiting_for IS NOT NULL OR EXISTS (SELECT 1 FROM pending_write WHERE"
    " pending_write.thread = thread.number AND pending_write.namespace = 0 AND"
    " pending_write.checkpoint = (SELECT newest.id FROM checkpoint AS newest WHERE newest.thread ="
    " thread.number AND newest.namespace = 0 ORDER BY newest.id DESC LIMIT 1)))",
    "tool": "tool = :tool",
    "tag": f"{INSTR}(tags, :tag) > 0",
    "since": "updated_at >= :since AND active_at >= :since / 60000",
    "until": "updated_at < :until AND active_at <= :until / 60000",
    "begins": "substr(id, 1, length(:begins)) = :begins",
    "title": f"title {LIKE} :title ESCAPE '!'",
}
NOTED: Final = f"{INSTR}(metadata, :{{name}}) > 0"
SET_TITLE = (
    "UPDATE thread SET version = version + 1, title = :title, titled_by = NULL WHERE number ="
    " :thread"
)
SET_WRITTEN_TITLE = (
    "UPDATE thread SET version = version + 1, title = :title WHERE number = :thread AND titled_by ="
    " :titled_by"
)
SELECT_TITLED_BY = "SELECT titled_by FROM thread WHERE number = :thread"
SET_TOOL = "UPDATE thread SET tool = :tool WHERE number = :thread"
SET_STATUS = "UPDATE thread SET status = :status WHERE number = :thread"
SET_TAGS = "UPDATE thread SET tags = :tags WHERE number = :thread"
SET_METADATA = "UPDATE thread SET metadata = :metadata WHERE number = :thread"
