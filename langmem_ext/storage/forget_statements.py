"""The statements that forget: what a thread has, by size, and its deletion by ranges."""

from __future__ import annotations

from typing import Final

from langmem_ext.storage.schema import RUN_OF_WORD
from langmem_ext.storage.statements import TOKENS, WRITE_COLUMNS

# -- what a thread has -------------------------------------------------------------------------------------------------------------------

SELECT_CHECKPOINTS = (
    "SELECT namespace, id, parent, label, shape, pattern, length(id) + length(body)"
    " FROM checkpoint WHERE thread = :thread ORDER BY namespace, id"
)
SELECT_WRITES = f"SELECT {WRITE_COLUMNS} FROM pending_write WHERE thread = :thread"
SELECT_ITEM_WORDS = "SELECT DISTINCT shape FROM item WHERE key >= :low AND key < :high AND shape IS NOT NULL"
SELECT_WORDS = "SELECT number, length(body) FROM word WHERE thread = :thread ORDER BY number"
SELECT_NAMESPACES = "SELECT number FROM namespace WHERE thread = :thread"

IS_MESSAGE: Final = "(role IS NOT NULL OR rest IS NOT NULL)"
ITEM_BYTES: Final = (
    "coalesce(length(message_id), 0) + coalesce(length(name), 0) + coalesce(length(CAST(text AS BLOB)), 0)"
    " + coalesce(length(tool_call_id), 0) + coalesce(length(rest), 0)"
)
MEASURE_ITEMS = (
    f"SELECT count(*), coalesce(sum({IS_MESSAGE}), 0), coalesce(sum({TOKENS}), 0), coalesce(sum({ITEM_BYTES}), 0)"
    " FROM item WHERE key >= :low AND key < :high"
)
MEASURE_VALUES = "SELECT count(*), coalesce(sum(length(body)), 0) FROM value WHERE key >= :low AND key < :high"
MEASURE_CHECKPOINTS = "SELECT count(*), coalesce(sum(length(id) + length(body)), 0) FROM checkpoint WHERE thread = :thread"
MEASURE_WRITES = "SELECT count(*), coalesce(sum(length(task) + length(body)), 0) FROM pending_write WHERE thread = :thread"
MEASURE_WORDS = "SELECT count(*), coalesce(sum(length(body)), 0) FROM word WHERE thread = :thread"

# -- deletion ----------------------------------------------------------------------------------------------------------------------------

# The row after a deleted one must name its parent: an empty one would then mean another row.
NAME_PARENT = "UPDATE checkpoint SET parent = :parent WHERE thread = :thread AND namespace = :namespace AND id = :id"
DELETE_CHECKPOINT = "DELETE FROM checkpoint WHERE thread = :thread AND namespace = :namespace AND id = :id"
DELETE_WRITES = "DELETE FROM pending_write WHERE thread = :thread AND namespace = :namespace AND checkpoint = :checkpoint AND task = :task"
DELETE_ITEMS = "DELETE FROM item WHERE key >= :low AND key < :high"
DELETE_VALUES = "DELETE FROM value WHERE key >= :low AND key < :high"
DELETE_WORDS = "DELETE FROM word WHERE thread = :thread AND number >= :low AND number < :high"
DELETE_NAMESPACE = "DELETE FROM namespace WHERE thread = :thread AND number = :number"
LESSEN_THREAD = "UPDATE thread SET generation = generation + 1, items = items - :items, tokens = tokens - :tokens WHERE number = :thread"
FORGET_TITLE = "UPDATE thread SET title = NULL, titled_by = NULL WHERE number = :thread AND titled_by >= :first AND titled_by < :end"
SET_HEAD = "UPDATE thread SET head_messages = :head_messages, waiting_for = :waiting_for WHERE number = :thread"

# -- runs --------------------------------------------------------------------------------------------------------------------------------

SELECT_THREADS_OF_RUN = (
    f"SELECT DISTINCT thread.id, thread.owner FROM word JOIN thread ON thread.number = word.thread"
    f" WHERE {RUN_OF_WORD} IS NOT NULL AND {RUN_OF_WORD} = :run"
)
SELECT_WORDS_OF_RUN = f"SELECT number FROM word WHERE {RUN_OF_WORD} IS NOT NULL AND {RUN_OF_WORD} = :run AND thread = :thread"

# -- retention ---------------------------------------------------------------------------------------------------------------------------

SELECT_OLDEST = (
    "SELECT oldest.updated_at, oldest.number, thread.id FROM"
    " (SELECT updated_at, number FROM thread WHERE (updated_at, number) > (:at, :after)"
    " AND updated_at < CASE WHEN tool IS NULL THEN :chats ELSE :tools END"
    " ORDER BY updated_at, number LIMIT :limit) AS oldest JOIN thread ON thread.number = oldest.number"
    " ORDER BY oldest.updated_at, oldest.number"
)
SELECT_OLDEST_OF = SELECT_OLDEST.replace("WHERE ", "WHERE owner = :owner AND ", 1)
SELECT_REST = "SELECT updated_at, tool, waiting_for FROM thread WHERE number = :thread"
COUNT_CHECKPOINTS = "SELECT count(*) FROM checkpoint WHERE thread = (SELECT number FROM thread WHERE thread.id = :id) GROUP BY namespace"

# -- copies ------------------------------------------------------------------------------------------------------------------------------

HAS_ROWS = (
    "SELECT EXISTS (SELECT 1 FROM checkpoint WHERE thread = :thread) OR EXISTS (SELECT 1 FROM pending_write WHERE thread = :thread)"
    " OR EXISTS (SELECT 1 FROM item WHERE key >= :low AND key < :high)"
)
COPY_THREAD_ROW = (
    "UPDATE thread SET title = source.title, titled_by = source.titled_by, items = source.items, tokens = source.tokens,"
    " head_messages = source.head_messages,"
    " waiting_for = source.waiting_for, metadata = source.metadata, tags = source.tags, tool = source.tool, key_id = source.key_id,"
    " forked_from = source.id, epoch = source.epoch,"
    " next_item = source.next_item, next_value = source.next_value, next_word = source.next_word,"
    " next_namespace = source.next_namespace, generation = thread.generation + 1, updated_at = :now, active_at = :now / 60000"
    " FROM (SELECT * FROM thread WHERE number = :source) AS source WHERE thread.number = :target"
)
COPY_ROWS: Final = (
    "INSERT INTO item (key, message_id, role, name, text, tool_call_id, seconds, tokens, rest, shape, crc)"
    " SELECT key + :shift, message_id, role, name, text, tool_call_id, seconds, tokens, rest, shape, crc + :apart"
    " FROM item WHERE key >= :low AND key < :high",
    "INSERT INTO value (key, body, crc) SELECT key + :shift, body, crc + :apart FROM value WHERE key >= :low AND key < :high",
    "INSERT INTO namespace (thread, number, name, crc) SELECT :target, number, name, crc + :apart FROM namespace WHERE thread = :source",
    "INSERT INTO word (thread, number, body, crc) SELECT :target, number, body, crc + :apart FROM word WHERE thread = :source",
    "INSERT INTO checkpoint (thread, namespace, id, parent, step, label, shape, pattern, body, crc)"
    " SELECT :target, namespace, id, parent, step, label, shape, pattern, body, crc + :apart FROM checkpoint WHERE thread = :source",
    "INSERT INTO pending_write (thread, namespace, checkpoint, task, shape, body, crc)"
    " SELECT :target, namespace, checkpoint, task, shape, body, crc + :apart FROM pending_write WHERE thread = :source",
)
# Metadata that says which thread it is of, as the agent server's does.
SELECT_LABELS_OF = (
    "SELECT number, body, crc, CAST(json_set(CAST(body AS TEXT), '$.thread_id', :target_id) AS BLOB) FROM word"
    " WHERE thread = :target AND number IN (SELECT label FROM checkpoint WHERE thread = :target)"
    " AND CASE WHEN json_valid(CAST(body AS TEXT)) THEN json_extract(CAST(body AS TEXT), '$.thread_id') = :source_id END"
)
RENAME_LABEL = "UPDATE word SET body = :body, crc = :crc WHERE thread = :thread AND number = :number"
