"""The statements that read a database of langgraph-checkpoint-sqlite, and those that say what of it is stored already."""

from __future__ import annotations

from langmem_ext.storage import dialect
from langmem_ext.storage.statements import CHECKPOINT_COLUMNS, OWNED, WRITE_COLUMNS

# -- the source, which is only read ------------------------------------------------------------------------------------------------------

TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"
COLUMNS = "SELECT name FROM pragma_table_info(:table)"
THREADS = "SELECT thread_id, count(*) FROM checkpoints GROUP BY thread_id ORDER BY thread_id"
CHECKPOINTS = "SELECT checkpoint_ns, checkpoint_id FROM checkpoints WHERE thread_id = :thread ORDER BY checkpoint_id, checkpoint_ns"
CHECKPOINT = (
    "SELECT parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints"
    " WHERE thread_id = :thread AND checkpoint_ns = :namespace AND checkpoint_id = :id"
)
PLACES = "SELECT checkpoint_ns, checkpoint_id, task_id, idx FROM writes WHERE thread_id = :thread"
WRITES = (
    "SELECT task_id, {path}, idx, channel, type, value FROM writes"
    " WHERE thread_id = :thread AND checkpoint_ns = :namespace AND checkpoint_id = :id ORDER BY 2, 1, 3"
)

# -- the target --------------------------------------------------------------------------------------------------------------------------

STORED_CHECKPOINTS = (
    f"SELECT namespace, {CHECKPOINT_COLUMNS} FROM checkpoint WHERE thread = :thread AND (namespace, id) > (:namespace, :id)"
    " ORDER BY namespace, id LIMIT :limit"
)
STORED_WRITES = (
    f"SELECT {WRITE_COLUMNS} FROM pending_write"
    " WHERE thread = :thread AND (namespace, checkpoint, task) > (:namespace, :checkpoint, :task)"
    " ORDER BY namespace, checkpoint, task LIMIT :limit"
)
SELECT_TIMES = f"SELECT created_at, updated_at FROM thread WHERE {dialect.OF_ID} AND {OWNED}"
SIZE = dialect.SIZE
