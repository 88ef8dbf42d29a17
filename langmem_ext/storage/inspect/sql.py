"""The SQL of an examination: whole tables, a page at a time, by key."""

from __future__ import annotations

from typing import Final

from langmem_ext.storage.checkpoints.sql import (
    CHECKPOINT_COLUMNS,
    ITEM_COLUMNS,
    TOKENS,
    WRITE_COLUMNS,
)
from langmem_ext.storage.schema.dialect import (
    AT,
    BEHIND,
    FROM_THREAD,
    INTEGRITY,
    KEY,
    LAST_THREAD,
    LOST_THREAD,
    OF_THREAD,
    ROW_THREAD,
)

INTEGRITY_CHECK = INTEGRITY
SELECT_COUNTER_NAME = "SELECT value FROM setting WHERE name = 'token_counter'"
COUNT_THREADS = "SELECT count(*) FROM thread"
HAS_COMPRESSED = (
    "SELECT EXISTS (SELECT 1 FROM item WHERE text <> CAST(text AS TEXT) OR substr(rest, 1, 1) ="
    " :mark) OR EXISTS (SELECT 1 FROM value WHERE substr(body, 1, 1) = :mark)"
)
SELECT_THREAD_PAGE = "SELECT number FROM thread WHERE number > :after ORDER BY number LIMIT :limit"
THREAD_COLUMNS: Final = (
    "number",
    "id",
    "items",
    "tokens",
    "head_messages",
    "waiting_for",
    "updated_at",
    "active_at",
    "next_item",
    "next_value",
    "next_word",
    "next_namespace",
    "generation",
    "status",
    "created_at",
    "epoch",
    "owner",
    "title",
    "tags",
    "metadata",
    "tool",
    "forked_from",
)
SELECT_THREAD_ROW = f"SELECT {', '.join(THREAD_COLUMNS)} FROM thread WHERE number = :thread"
REPAIR_THREAD = (
    "UPDATE thread SET version = version + 1, items = :items, tokens = :tokens, head_messages ="
    " :head_messages, waiting_for = :waiting_for, active_at = :active_at, next_item = :next_item,"
    " next_value = :next_value, next_word = :next_word, next_namespace = :next_namespace,"
    " generation = :generation WHERE number = :thread"
)
ADOPT_THREAD = (
    "INSERT INTO thread (number, id, status, created_at, updated_at, active_at, epoch, next_item,"
    f" next_value, next_word, next_namespace, items, tokens) VALUES ({LOST_THREAD}, :id, 'active',"
    " :now, :now, :minute, :second, 0, 0, 0, 1, 0, 0) ON CONFLICT DO NOTHING RETURNING number"
)

# -- what a thread has -----------------------------------------------------------------------------

# Columns to compare come after those that decode an item.
SELECT_ITEM_PAGE = (
    f"SELECT {ITEM_COLUMNS}, {TOKENS} FROM item WHERE {BEHIND} ORDER BY {KEY} LIMIT :limit"
)
SELECT_ITEM = f"SELECT {ITEM_COLUMNS}, {TOKENS} FROM item WHERE {AT}"
REPAIR_ITEM = (
    "UPDATE item SET name = :name, text = :text, tool_call_id = :tool_call_id, tokens = :tokens,"
    f" crc = :crc WHERE {AT}"
)
NEXT_ITEM = f"SELECT {KEY} FROM item WHERE {BEHIND} ORDER BY {KEY} LIMIT 1"
SELECT_VALUE_PAGE = f"SELECT {KEY}, body, crc FROM value WHERE {BEHIND} ORDER BY {KEY} LIMIT :limit"
NEXT_VALUE = f"SELECT {KEY} FROM value WHERE {BEHIND} ORDER BY {KEY} LIMIT 1"
SELECT_WORD_PAGE = (
    "SELECT number, body, crc FROM word WHERE thread = :thread AND number > :first ORDER BY number"
    " LIMIT :limit"
)
NEXT_WORD = (
    "SELECT number FROM word WHERE thread = :thread AND number > :first ORDER BY number LIMIT 1"
)
SELECT_NAMESPACE_PAGE = (
    "SELECT number, name, crc FROM namespace WHERE thread = :thread AND number > :first ORDER BY"
    " number LIMIT :limit"
)
NEXT_NAMESPACE = (
    "SELECT number FROM namespace WHERE thread = :thread AND number > :first ORDER BY number"
    " LIMIT 1"
)
_AFTER_CHECKPOINT = (
    "thread = :thread AND (namespace, id) > (:first, :second) ORDER BY namespace, id"
)
SELECT_CHECKPOINT_PAGE = (
    f"SELECT namespace, {CHECKPOINT_COLUMNS} FROM checkpoint WHERE {_AFTER_CHECKPOINT} LIMIT :limit"
)
NEXT_CHECKPOINT = f"SELECT namespace, id FROM checkpoint WHERE {_AFTER_CHECKPOINT} LIMIT 1"
_AFTER_WRITE = (
    "thread = :thread AND (namespace, checkpoint, task) > (:first, :second, :third) ORDER BY"
    " namespace, checkpoint, task"
)
SELECT_WRITE_PAGE = f"SELECT {WRITE_COLUMNS} FROM pending_write WHERE {_AFTER_WRITE} LIMIT :limit"
NEXT_WRITE = f"SELECT namespace, checkpoint, task FROM pending_write WHERE {_AFTER_WRITE} LIMIT 1"
SELECT_ITEM_TOTALS = (
    "SELECT count(CASE WHEN role IS NOT NULL OR rest IS NOT NULL THEN 1 END), coalesce(sum(CASE"
    f" WHEN role IS NOT NULL OR rest IS NOT NULL THEN {TOKENS} END), 0), max({KEY}) FROM item WHERE"
    f" {OF_THREAD}"
)
SELECT_LAST_VALUE = f"SELECT max({KEY}) FROM value WHERE {OF_THREAD}"
SELECT_LAST_WORD = "SELECT max(number) FROM word WHERE thread = :thread"
SELECT_LAST_NAMESPACE = "SELECT max(number) FROM namespace WHERE thread = :thread"

# -- rows of no thread -----------------------------------------------------------------------------

SELECT_LAST_NUMBER = f"SELECT {LAST_THREAD}"
NEXT_OWNERS: Final = {
    "item": f"SELECT {ROW_THREAD} FROM item WHERE {FROM_THREAD} LIMIT 1",
    "value": f"SELECT {ROW_THREAD} FROM value WHERE {FROM_THREAD} LIMIT 1",
    "word": "SELECT thread FROM word WHERE thread >= :first ORDER BY thread LIMIT 1",
    "namespace": "SELECT thread FROM namespace WHERE thread >= :first ORDER BY thread LIMIT 1",
    "checkpoint": "SELECT thread FROM checkpoint WHERE thread >= :first ORDER BY thread LIMIT 1",
    "pending_write": (
        "SELECT thread FROM pending_write WHERE thread >= :first ORDER BY thread LIMIT 1"
    ),
}
"""The number of the next thread that has rows in a table, from a number on."""
