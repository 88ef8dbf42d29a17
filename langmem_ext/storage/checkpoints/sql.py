"""The SQL of checkpoints, items, values and a thread's counters.

Written once, in the SQL that SQLite and PostgreSQL share, with named parameters, and markers
(`storage.schema.dialect`) where the two differ. `thread` is a thread's number.
"""

from __future__ import annotations

from typing import Final

from langmem_ext.messages.token_costs.stored_tokens import ROLE_LENGTHS
from langmem_ext.storage.schema.dialect import (
    AT,
    AT_1_2,
    CHECKPOINT_OF_ID,
    FOR_UPDATE,
    HELD_ID,
    KEY,
    NEW_THREAD,
    NEW_THREAD_VALUES,
    NUMBERED,
    OF_ID,
    OF_ID_1_2,
    OF_THREAD,
    OWNER_VALUE,
    PLACE,
    PLACE_1_2,
    THREAD_1_2,
    THREAD_OF_ROW,
    WITHIN,
    bytes_of,
)

# -- threads ---------------------------------------------------------------------------------------

_COUNTERS: Final = (
    "number, owner, born, generation, version, next_item, next_value, next_word, next_namespace,"
    " active_at, CASE WHEN title IS NULL THEN 1 ELSE 0 END, epoch, CASE WHEN titled_by BETWEEN 0"
    " AND 4294967294 THEN titled_by + 1 ELSE 0 END, indexed"
)
OWNED: Final = "(owner = :owner OR :owner IS NULL)"
SELECT_THREAD = f"SELECT {_COUNTERS} FROM thread WHERE {OF_ID} {FOR_UPDATE}"
SELECT_OWN_THREAD = f"SELECT {_COUNTERS} FROM thread WHERE {OF_ID} AND {OWNED}"
SELECT_OWN_ROW = f"SELECT {_COUNTERS} FROM thread WHERE id = ?1 AND (owner = ?2 OR ?2 IS NULL)"
HAS_NUMBER = f"SELECT 1 FROM thread WHERE {NUMBERED}"
LOCK_THREAD = f"SELECT 1 FROM thread WHERE {OF_ID} {FOR_UPDATE}"
HOLD_ID = f"SELECT {HELD_ID}"
LOCK_NUMBER = f"SELECT 1 FROM thread WHERE number = :thread {FOR_UPDATE}"
LOCK_OWN_THREAD = f"{SELECT_OWN_THREAD} {FOR_UPDATE}"
_NEW_THREAD: Final = (
    f"INSERT INTO thread ({NEW_THREAD}, owner, born, version, status, created_at, updated_at,"
    " active_at, epoch, next_item, next_value, next_word, next_namespace, items, tokens, indexed)"
    f" VALUES ({NEW_THREAD_VALUES}, {OWNER_VALUE}, :born, :version, 'active', :now, :now, :minute,"
    " :second, 0, 0, 0, 1, 0, 0, (SELECT 0 FROM setting WHERE name = 'search'))"
)
INSERT_THREAD = f"{_NEW_THREAD} ON CONFLICT DO NOTHING RETURNING {_COUNTERS}"
# At most once a minute, but for a title (once) and a turn's tool.
DESCRIBE_THREAD = (
    "UPDATE thread SET active_at = ?1, tool = coalesce(?2, tool), title = coalesce(title, ?3),"
    " titled_by = CASE WHEN title IS NULL THEN ?4 ELSE titled_by END WHERE number = ?5"
)
RETITLE = "UPDATE thread SET title = ?1, titled_by = ?2 WHERE number = ?3 AND titled_by = ?4"
SELECT_WAITING = "SELECT waiting_for FROM thread WHERE number = :thread"
DELETE_THREAD = (
    f"DELETE FROM item WHERE {OF_THREAD}",
    f"DELETE FROM value WHERE {OF_THREAD}",
    "DELETE FROM checkpoint WHERE thread = :thread",
    "DELETE FROM pending_write WHERE thread = :thread",
    "DELETE FROM word WHERE thread = :thread",
    "DELETE FROM namespace WHERE thread = :thread",
    "DELETE FROM thread WHERE number = :thread",
)

# -- namespaces and words --------------------------------------------------------------------------

SELECT_NAMESPACES = "SELECT number, name, crc FROM namespace WHERE thread = :thread ORDER BY number"
SELECT_NAMESPACE = "SELECT number, name, crc FROM namespace WHERE thread = :thread AND name = :name"
INSERT_NAMESPACE = "INSERT INTO namespace (thread, number, name, crc) VALUES (?1, ?2, ?3, ?4)"
SELECT_WORDS_FROM = (
    "SELECT number, body, crc FROM word WHERE thread = :thread AND number >= :first ORDER BY number"
)
SELECT_WORD = "SELECT body, crc FROM word WHERE thread = :thread AND number = :number"
INSERT_WORD = "INSERT INTO word (thread, number, body, crc) VALUES (?1, ?2, ?3, ?4)"

# -- items and values ------------------------------------------------------------------------------

TOKENS: Final = (
    "coalesce(tokens, (length(text) + CASE role "
    + " ".join(f"WHEN {role} THEN {length}" for role, length in ROLE_LENGTHS.items())
    + " END + 3) / 4 + 3)"
)
"""An item's token count, even if its row does not have it."""
ITEM_BODY: Final = "message_id, role, name, text, tool_call_id, seconds, rest, shape, crc"
ITEM_COLUMNS = f"{KEY}, {ITEM_BODY}"
SELECT_ITEMS = f"SELECT {ITEM_COLUMNS} FROM item WHERE {WITHIN} ORDER BY {KEY}"
SELECT_ITEM = f"SELECT {ITEM_COLUMNS} FROM item WHERE {AT}"
SELECT_ITEM_BODY = f"SELECT {ITEM_BODY} FROM item WHERE {AT}"
SELECT_ITEM_TIMES = f"SELECT seconds FROM item WHERE {WITHIN} ORDER BY {KEY}"
SELECT_ITEM_SIZES = (
    f"SELECT {KEY}, coalesce({bytes_of('text')}, 0) + coalesce({bytes_of('rest')}, 0) FROM item"
    f" WHERE {WITHIN}"
)
INSERT_ITEM = (
    f"INSERT INTO item ({PLACE}, message_id, role, name, text, tool_call_id, seconds, rest, shape,"
    f" tokens, crc) VALUES ({PLACE_1_2}, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
)
COMPLETE_ITEM = (
    "UPDATE item SET message_id = ?3, role = ?4, name = ?5, tool_call_id = ?6, rest = ?7, shape ="
    f" ?8, tokens = ?9, crc = ?10 WHERE {AT_1_2} AND role IS NULL AND rest IS NULL"
)
FIND_ITEM = f"SELECT {KEY} FROM item WHERE {WITHIN} AND message_id = :message_id"
FIND_ITEM_OF_THREAD = f"SELECT {KEY} FROM item WHERE {OF_THREAD} AND message_id = :message_id"
FIND_ITEMS = (
    f"SELECT {KEY}, message_id FROM item WHERE {WITHIN} AND message_id IN ({{ids}}) ORDER BY {KEY}"
)
NAME_ITEM = f"UPDATE item SET message_id = ?3, crc = ?4 WHERE {AT_1_2} AND message_id IS NULL"
INSERT_VALUE = f"INSERT INTO value ({PLACE}, body, crc) VALUES ({PLACE_1_2}, ?3, ?4)"
SELECT_VALUE = f"SELECT body, crc FROM value WHERE {AT}"
SELECT_VALUE_SIZES = f"SELECT {KEY}, {bytes_of('body')} FROM value WHERE {WITHIN}"

# -- checkpoints and pending writes ----------------------------------------------------------------


def _parent(thread: str) -> str:
    """A checkpoint's parent, if it is in this thread.

    An empty one is the row before it, by key, in its namespace.
    """
    return (
        "CASE WHEN length(checkpoint.parent) = 0 THEN (SELECT coalesce(earlier.given_id,"
        f" earlier.id) FROM checkpoint AS earlier WHERE earlier.thread = {thread} AND"
        " earlier.namespace = checkpoint.namespace AND earlier.id < checkpoint.id ORDER BY"
        " earlier.id DESC LIMIT 1) ELSE checkpoint.parent END"
    )


# If a parameter names the thread, PostgreSQL plans for its partition alone.
PARENT = _parent(":thread")
_PARENT_IN_LIST = _parent("checkpoint.thread")
# A checkpoint's key is the column `id`. Its own id is there, too, or in `given_id` if the key is
# another (`ids.key_behind`).
_ID: Final = "coalesce(checkpoint.given_id, checkpoint.id)"
_KEY: Final = "CASE WHEN checkpoint.given_id IS NOT NULL THEN checkpoint.id END AS own_key"
_KEY_OF: Final = (
    "coalesce((SELECT named.id FROM checkpoint AS named"
    " WHERE named.thread = :thread AND named.namespace = :namespace AND named.given_id = {0}), {0})"
)
"""The key of the checkpoint that has an id."""

CHECKPOINT_COLUMNS = f"{_ID}, {PARENT}, step, label, shape, body, {_KEY}, crc"
"""Id, parent, … and the key, NULL if it is the id."""

INSERT_CHECKPOINT = (
    "INSERT INTO checkpoint (thread, namespace, id, given_id, parent, step, label, shape, body,"
    " crc) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
)
REPLACE_CHECKPOINT = (
    "UPDATE checkpoint SET given_id = ?4, parent = ?5, step = ?6, label = ?7, shape = ?8, body ="
    " ?9, crc = ?10 WHERE thread = ?1 AND namespace = ?2 AND id = ?3"
)
# Before a row is inserted in between, or deleted: the row after it must name its parent.
NAME_PRECEDING = (
    f"UPDATE checkpoint SET parent = {PARENT} WHERE thread = :thread AND namespace = :namespace AND"
    " length(parent) = 0 AND id = (SELECT later.id FROM checkpoint AS later WHERE later.thread ="
    " :thread AND later.namespace = :namespace AND later.id > :key ORDER BY later.id LIMIT 1)"
)
SELECT_CHECKPOINT = (
    f"SELECT {CHECKPOINT_COLUMNS} FROM checkpoint WHERE thread = :thread AND namespace = :namespace"
    f" AND id = {_KEY_OF.format(':id')}"
)
SELECT_KEY = (
    "SELECT id FROM checkpoint WHERE thread = :thread AND namespace = :namespace AND id ="
    f" {_KEY_OF.format(':id')}"
)
SELECT_LATEST_CHECKPOINT = (
    f"SELECT {CHECKPOINT_COLUMNS} FROM checkpoint WHERE thread = :thread AND namespace = :namespace"
    " ORDER BY id DESC LIMIT 1"
)
_OF_LATEST: Final = (
    "FROM checkpoint WHERE thread = :thread AND namespace = :namespace ORDER BY id DESC LIMIT 1"
)
SELECT_LATEST_ID = f"SELECT {_ID}, {_KEY} {_OF_LATEST}"
# The newest of each namespace is the last row of an index's range: there may be many more
# checkpoints than namespaces.
SELECT_LATEST_KEYS = (
    "SELECT (SELECT id FROM checkpoint WHERE checkpoint.thread = :thread AND checkpoint.namespace ="
    " space.number ORDER BY id DESC LIMIT 1) FROM (SELECT 0 AS number UNION ALL SELECT number FROM"
    " namespace WHERE thread = :thread) AS space"
)
WRITE_COLUMNS = "namespace, checkpoint, task, shape, body, crc"
_OF_CHECKPOINT: Final = "thread = ?1 AND namespace = ?2 AND checkpoint = {0}"
_SELECT_WRITES: Final = (
    f"SELECT {WRITE_COLUMNS} FROM pending_write WHERE {_OF_CHECKPOINT} ORDER BY task"
)
SELECT_WRITES = _SELECT_WRITES.format("?3")
# The writes of a namespace's newest checkpoint while it is not known which one that is.
SELECT_NEWEST_WRITES = _SELECT_WRITES.format(
    f"(SELECT {_ID} FROM checkpoint WHERE thread = ?1 AND namespace = ?2 ORDER BY id DESC LIMIT 1)"
)
HAS_CHECKPOINT = (
    "SELECT 1 FROM checkpoint WHERE thread = :thread AND namespace = :namespace AND id ="
    f" {_KEY_OF.format(':checkpoint')}"
)
HAS_CHECKPOINT_ANYWHERE = (
    "SELECT 1 FROM checkpoint WHERE thread = :thread AND (id = :checkpoint OR given_id ="
    " :checkpoint) LIMIT 1"
)
INSERT_WRITES = (
    "INSERT INTO pending_write (thread, namespace, checkpoint, task, shape, body, crc) VALUES (?1,"
    " ?2, ?3, ?4, ?5, ?6, ?7)"
)
SELECT_TASK_WRITES = (
    f"SELECT {WRITE_COLUMNS} FROM pending_write WHERE {_OF_CHECKPOINT.format('?3')} AND task = ?4"
)
UPDATE_WRITES = (
    "UPDATE pending_write SET shape = ?5, body = ?6, crc = ?7 WHERE thread = ?1 AND namespace = ?2"
    " AND checkpoint = ?3 AND task = ?4"
)
# A thread's row, and with it a checkpoint of a namespace: the newest, or that of an id.
_LOOK: Final = (
    f"SELECT known.*, {_ID}, {_parent(THREAD_OF_ROW)}, checkpoint.step, checkpoint.label,"
    f" checkpoint.shape, checkpoint.body, {_KEY}, checkpoint.crc FROM (SELECT {_COUNTERS} FROM"
    f" thread WHERE {OF_ID_1_2} AND (owner = ?3 OR ?3 IS NULL)) AS known LEFT JOIN (SELECT * FROM"
    f" checkpoint WHERE thread = {THREAD_1_2} AND namespace = ?4 {{0}}) AS checkpoint ON TRUE"
)
LOOK_AT_NEWEST = _LOOK.format("ORDER BY id DESC LIMIT 1")
LOOK_AT_ID = _LOOK.format(
    "AND id = coalesce((SELECT named.id FROM checkpoint AS named"
    f" WHERE named.thread = {THREAD_1_2} AND named.namespace = ?4 AND named.given_id = ?5), ?5)"
)
SELECT_CHECKPOINT_PAGE = (
    "SELECT checkpoint.thread, thread.id, thread.generation, thread.version, checkpoint.namespace,"
    f" {_ID}, {_PARENT_IN_LIST}, checkpoint.step, checkpoint.label, checkpoint.shape,"
    f" checkpoint.body, {_KEY}, checkpoint.crc FROM checkpoint JOIN thread ON thread.number ="
    " checkpoint.thread LEFT JOIN word ON word.thread = checkpoint.thread AND word.number ="
    " checkpoint.label{where} ORDER BY checkpoint.id DESC, checkpoint.thread,"
    " checkpoint.namespace LIMIT :limit"
)
PAGE_CONDITIONS: Final = {
    "id": CHECKPOINT_OF_ID,
    "owner": "thread.owner = :owner",
    "namespace": (
        "checkpoint.namespace = (SELECT number FROM namespace WHERE thread = checkpoint.thread AND"
        " name = :namespace)"
    ),
    "checkpoint_id": (
        "(checkpoint.id = :checkpoint_id AND checkpoint.given_id IS NULL OR checkpoint.given_id ="
        " :checkpoint_id)"
    ),
    "before": "checkpoint.id < :before",
    "step": "checkpoint.step = :step",
}
PAGE_BEFORE = (
    "checkpoint.id < coalesce((SELECT named.id FROM checkpoint AS named WHERE named.thread ="
    f" (SELECT number FROM thread WHERE {NUMBERED}) AND named.given_id = :before LIMIT 1), :before)"
)
"""The same within one thread, whose checkpoint `:before` may have another key than its id."""

PAGE_AFTER = (
    "(checkpoint.id < :at OR checkpoint.id = :at AND (checkpoint.thread, checkpoint.namespace) >"
    " (:at_thread, :at_namespace))"
)
