"""The SQL of an examination: whole tables, a page at a time, by key."""

from __future__ import annotations

from typing import Final

from langmem_ext.storage.statements import CHECKPOINT_COLUMNS, ITEM_COLUMNS, TOKENS, WRITE_COLUMNS

INTEGRITY_CHECK = "PRAGMA integrity_check(100)"
SELECT_COUNTER_NAME = "SELECT value FROM setting WHERE name = 'token_counter'"
COUNT_THREADS = "SELECT count(*) FROM thread"
HAS_COMPRESSED = (
    "SELECT EXISTS (SELECT 1 FROM item WHERE typeof(text) = 'blob' OR substr(rest, 1, 1) = x'C1')"
    " OR EXISTS (SELECT 1 FROM value WHERE substr(body, 1, 1) = x'C1')"
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
    "UPDATE thread SET items = :items, tokens = :tokens, head_messages = :head_messages, waiting_for = :waiting_for,"
    " active_at = :active_at, next_item = :next_item, next_value = :next_value, next_word = :next_word, next_namespace = :next_namespace,"
    " generation = :generation WHERE number = :thread"
)
ADOPT_THREAD = (
    "INSERT INTO thread"
    " (number, id, status, created_at, updated_at, active_at, epoch, next_item, next_value, next_word, next_namespace, items, tokens)"
    " VALUES (:thread, :id, 'active', :now, :now, :now / 60000, :now / 1000, 0, 0, 0, 1, 0, 0) ON CONFLICT DO NOTHING"
)

# -- what a thread has -------------------------------------------------------------------------------------------------------------------

# What is compared stands after what decodes an item.
SELECT_ITEM_PAGE = f"SELECT {ITEM_COLUMNS}, {TOKENS} FROM item WHERE key > :after AND key < :high ORDER BY key LIMIT :limit"
SELECT_ITEM = f"SELECT {ITEM_COLUMNS}, {TOKENS} FROM item WHERE key = :key"
REPAIR_ITEM = "UPDATE item SET name = :name, text = :text, tool_call_id = :tool_call_id, tokens = :tokens, crc = :crc WHERE key = :key"
NEXT_ITEM = "SELECT key FROM item WHERE key > :after AND key < :high ORDER BY key LIMIT 1"
SELECT_VALUE_PAGE = "SELECT key, body, crc FROM value WHERE key > :after AND key < :high ORDER BY key LIMIT :limit"
NEXT_VALUE = "SELECT key FROM value WHERE key > :after AND key < :high ORDER BY key LIMIT 1"
SELECT_WORD_PAGE = "SELECT number, body, crc FROM word WHERE thread = :thread AND number > :first ORDER BY number LIMIT :limit"
NEXT_WORD = "SELECT number FROM word WHERE thread = :thread AND number > :first ORDER BY number LIMIT 1"
SELECT_NAMESPACE_PAGE = "SELECT number, name, crc FROM namespace WHERE thread = :thread AND number > :first ORDER BY number LIMIT :limit"
NEXT_NAMESPACE = "SELECT number FROM namespace WHERE thread = :thread AND number > :first ORDER BY number LIMIT 1"
_AFTER_CHECKPOINT = "thread = :thread AND (namespace, id) > (:first, :second) ORDER BY namespace, id"
SELECT_CHECKPOINT_PAGE = f"SELECT namespace, {CHECKPOINT_COLUMNS} FROM checkpoint WHERE {_AFTER_CHECKPOINT} LIMIT :limit"
NEXT_CHECKPOINT = f"SELECT namespace, id FROM checkpoint WHERE {_AFTER_CHECKPOINT} LIMIT 1"
_AFTER_WRITE = "thread = :thread AND (namespace, checkpoint, task) > (:first, :second, :third) ORDER BY namespace, checkpoint, task"
SELECT_WRITE_PAGE = f"SELECT {WRITE_COLUMNS} FROM pending_write WHERE {_AFTER_WRITE} LIMIT :limit"
NEXT_WRITE = f"SELECT namespace, checkpoint, task FROM pending_write WHERE {_AFTER_WRITE} LIMIT 1"
SELECT_ITEM_TOTALS = (
    "SELECT count(CASE WHEN role IS NOT NULL OR rest IS NOT NULL THEN 1 END),"
    f" coalesce(sum(CASE WHEN role IS NOT NULL OR rest IS NOT NULL THEN {TOKENS} END), 0), max(key)"
    " FROM item WHERE key >= :low AND key < :high"
)
SELECT_LAST_VALUE = "SELECT max(key) FROM value WHERE key >= :low AND key < :high"
SELECT_LAST_WORD = "SELECT max(number) FROM word WHERE thread = :thread"
SELECT_LAST_NAMESPACE = "SELECT max(number) FROM namespace WHERE thread = :thread"

# -- rows of no thread -------------------------------------------------------------------------------------------------------------------

NEXT_OWNERS: Final = {
    "item": "SELECT key >> 32 FROM item WHERE key >= :low ORDER BY key LIMIT 1",
    "value": "SELECT key >> 32 FROM value WHERE key >= :low ORDER BY key LIMIT 1",
    "word": "SELECT thread FROM word WHERE thread >= :first ORDER BY thread LIMIT 1",
    "namespace": "SELECT thread FROM namespace WHERE thread >= :first ORDER BY thread LIMIT 1",
    "checkpoint": "SELECT thread FROM checkpoint WHERE thread >= :first ORDER BY thread LIMIT 1",
    "pending_write": "SELECT thread FROM pending_write WHERE thread >= :first ORDER BY thread LIMIT 1",
}
"""The number of the next thread that has rows in a table, from a number on."""
