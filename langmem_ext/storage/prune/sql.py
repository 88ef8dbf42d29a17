"""The statements that forget: what a thread has, by size, and its deletion by ranges."""

from __future__ import annotations

from typing import Final

from langmem_ext.storage.checkpoints.sql import OWNED, TOKENS, WRITE_COLUMNS
from langmem_ext.storage.schema.dialect import (
    AT,
    CHECKPOINT_SIZE,
    ITEM_SIZE,
    OF_ID,
    OF_THREAD,
    RUN,
    THREAD_SIZE,
    VALUE_SIZE,
    WITHIN,
    WORD_SIZE,
    WRITE_SIZE,
)

# -- what a thread has -----------------------------------------------------------------------------

SELECT_CHECKPOINTS = (
    f"SELECT namespace, id, given_id, parent, label, shape, {CHECKPOINT_SIZE} FROM checkpoint WHERE"
    " thread = :thread ORDER BY namespace, id"
)
SELECT_WRITES = f"SELECT {WRITE_COLUMNS}, {WRITE_SIZE} FROM pending_write WHERE thread = :thread"
SELECT_ITEM_WORDS = f"SELECT DISTINCT shape FROM item WHERE {WITHIN} AND shape IS NOT NULL"
SELECT_WORDS = f"SELECT number, {WORD_SIZE} FROM word WHERE thread = :thread ORDER BY number"
SELECT_NAMESPACES = "SELECT number FROM namespace WHERE thread = :thread"

_MEASURE_ITEMS = (
    "SELECT count(*), count(CASE WHEN role IS NOT NULL OR rest IS NOT NULL THEN 1 END),"
    f" coalesce(sum({TOKENS}), 0), coalesce(sum({ITEM_SIZE}), 0) FROM item WHERE "
)
_MEASURE_VALUES = f"SELECT count(*), coalesce(sum({VALUE_SIZE}), 0) FROM value WHERE "
MEASURE_ITEMS = _MEASURE_ITEMS + WITHIN
MEASURE_VALUES = _MEASURE_VALUES + WITHIN
MEASURE_ALL_ITEMS = _MEASURE_ITEMS + OF_THREAD
MEASURE_ALL_VALUES = _MEASURE_VALUES + OF_THREAD
MEASURE_CHECKPOINTS = (
    f"SELECT count(*), coalesce(sum({CHECKPOINT_SIZE}), 0) FROM checkpoint WHERE thread = :thread"
)
MEASURE_WRITES = (
    f"SELECT count(*), coalesce(sum({WRITE_SIZE}), 0) FROM pending_write WHERE thread = :thread"
)
MEASURE_THREAD = (
    f"SELECT (SELECT {THREAD_SIZE} FROM thread WHERE number = :thread) + coalesce(sum({WORD_SIZE}),"
    " 0) FROM word WHERE thread = :thread"
)

# -- deletion --------------------------------------------------------------------------------------

# The row after a deleted one must name its parent: an empty one would then mean another row.
NAME_PARENT = (
    "UPDATE checkpoint SET parent = :parent WHERE thread = :thread AND namespace = :namespace AND"
    " id = :key"
)
DELETE_CHECKPOINT = (
    "DELETE FROM checkpoint WHERE thread = :thread AND namespace = :namespace AND id = :key"
)
DELETE_WRITES = (
    "DELETE FROM pending_write WHERE thread = :thread AND namespace = :namespace AND checkpoint ="
    " :checkpoint AND task = :task"
)
DELETE_ITEMS = f"DELETE FROM item WHERE {WITHIN}"
DELETE_VALUES = f"DELETE FROM value WHERE {WITHIN}"
DELETE_WORDS = "DELETE FROM word WHERE thread = :thread AND number >= :low AND number < :high"
DELETE_NAMESPACE = "DELETE FROM namespace WHERE thread = :thread AND number = :number"
LESSEN_THREAD = (
    "UPDATE thread SET generation = generation + 1, version = version + 1, items = items - :items,"
    " tokens = tokens - :tokens WHERE number = :thread"
)
TAKE_ID = f"UPDATE item SET message_id = NULL, crc = :crc WHERE {AT}"
TAKE_MESSAGE = (
    "UPDATE item SET message_id = NULL, role = NULL, name = NULL, tool_call_id = NULL, tokens = 0,"
    f" rest = NULL, shape = NULL, crc = :crc WHERE {AT}"
)
SET_OWNER = "UPDATE thread SET version = version + 1, owner = :owner WHERE number = :thread"
FORGET_TITLE = (
    "UPDATE thread SET version = version + 1, title = NULL, titled_by = NULL"
    " WHERE number = :thread AND titled_by >= :first AND titled_by < :end"
)
SET_HEAD = (
    "UPDATE thread SET version = version + 1, head_messages = :head_messages, waiting_for ="
    " :waiting_for WHERE number = :thread"
)

SELECT_COPIES = (
    "WITH RECURSIVE copy (id, owner, items) AS (SELECT id, owner, items FROM thread WHERE"
    " forked_from = :id UNION SELECT thread.id, thread.owner, thread.items FROM thread JOIN copy ON"
    f" thread.forked_from = copy.id) SELECT id FROM copy WHERE items > 0 AND {OWNED} ORDER BY id"
)
"""The copies of a thread, and theirs, that have messages."""

# -- items of the store ----------------------------------------------------------------------------

HAS_ITEMS: Final = "SELECT 1 FROM store_thread WHERE thread_id = :id LIMIT 1"
_ALONE: Final = (
    "SELECT own.item FROM store_thread AS own WHERE own.thread_id = :id AND NOT EXISTS (SELECT 1"
    " FROM store_thread AS other WHERE other.item = own.item AND other.thread_id <> :id)"
)
COUNT_ITEMS_OF = f"SELECT count(*) FROM store_item WHERE number IN ({_ALONE})"
DELETE_ITEMS_OF = (
    f"DELETE FROM store_vector WHERE item IN ({_ALONE})",
    f"DELETE FROM store_item WHERE number IN ({_ALONE})",
    "DELETE FROM store_thread WHERE thread_id = :id",
)
"""Deletes the items of a thread that come from no other."""

# -- runs ------------------------------------------------------------------------------------------

SELECT_THREADS_OF_RUN = (
    "SELECT DISTINCT thread.id, thread.owner FROM word JOIN thread ON thread.number = word.thread"
    f" WHERE {RUN} IS NOT NULL AND {RUN} = :run"
)
SELECT_WORDS_OF_RUN = (
    f"SELECT number FROM word WHERE {RUN} IS NOT NULL AND {RUN} = :run AND thread = :thread"
)

# -- retention -------------------------------------------------------------------------------------

# With the owner: an owner's role may have made a row that has another's id.
SELECT_OLDEST = (
    "SELECT oldest.updated_at, oldest.number, thread.id, thread.owner FROM (SELECT updated_at,"
    " number FROM thread WHERE (updated_at, number) > (:at, :after) AND updated_at < CASE WHEN tool"
    " IS NULL THEN CAST(:chats AS BIGINT) ELSE CAST(:tools AS BIGINT) END ORDER BY updated_at,"
    " number LIMIT :limit) AS oldest JOIN thread ON thread.number = oldest.number ORDER BY"
    " oldest.updated_at, oldest.number"
)
SELECT_OLDEST_OF = SELECT_OLDEST.replace("WHERE ", "WHERE owner = :owner AND ", 1)
SELECT_REST = "SELECT updated_at, tool, waiting_for FROM thread WHERE number = :thread"
COUNT_CHECKPOINTS = (
    f"SELECT count(*) FROM checkpoint WHERE thread = (SELECT number FROM thread WHERE {OF_ID})"
    " GROUP BY namespace"
)
