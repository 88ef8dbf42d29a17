"""The tables, and the named migrations that make them.

Invariants:
- A message is stored in exactly one row of `item` per thread. Checkpoints and pending writes refer
  to it by number.
- Rows of `item`, `value` and `word` are never changed (except that an item may get its id late) nor
  renumbered.
- `thread.next_*` are the counters of its rows; `thread.items` and `thread.tokens` count its items.
  They are written with the rows.
- `thread.version` changes with every write: as long as it is the one that a process has cached, the
  rest of its cache of the thread is current.
- `thread.generation` moves whenever a row that others may have cached is replaced or deleted: then
  their caches of the thread are void.
- `thread.indexed`: items below it are done in the search index, including those that are left out;
  NULL: the thread is not indexed (`storage.search.index`).
- Every row except a thread's holds a check of itself (`storage.rows.checksum`), which is rewritten
  when the row changes.
- A released migration is never edited; a later one follows it.
- No migration makes the search index (`storage.search.sql.CREATE` does): a release that changes it
  drops it in a migration.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from langmem_ext.errors import SchemaTooNew, StorageError, StorageUnavailable
from langmem_ext.storage.schema import postgres as postgres_schema
from langmem_ext.storage.schema import store as store_tables
from langmem_ext.storage.schema.dialect import RUN

APPLICATION_ID: Final = 0x6C6D6578
"""SQLite's `application_id` of our databases: "lmex"."""


@dataclass(frozen=True, slots=True)
class Migration:
    """A step of the schema.

    Attributes:
        name: Recorded in the database when it is applied.
        sqlite: Its statements on SQLite, in order; with markers (`storage.schema.dialect`), as all
            statements.
        postgres: The same on PostgreSQL.
    """

    name: str
    sqlite: tuple[str, ...]
    postgres: tuple[str, ...]


MIGRATION_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS langmem_migration (name TEXT PRIMARY KEY, applied_at INTEGER NOT"
    " NULL) WITHOUT ROWID"
)

_M001_TABLES = (
    # One row per conversation. The number keys every other table (items and values:
    # `storage.schema.dialect.KEY`); AUTOINCREMENT never gives one away twice, so nothing remembered
    # of a deleted thread can match a later one. titled_by: the item that gave the title; NULL for a
    # title that somebody gave.
    """CREATE TABLE thread (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        owner TEXT,
        title TEXT,
        titled_by INTEGER,
        status TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        active_at INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        items INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        head_messages INTEGER,
        forked_from TEXT,
        waiting_for TEXT,
        tool TEXT,
        tags TEXT,
        metadata TEXT,
        next_item INTEGER NOT NULL,
        next_value INTEGER NOT NULL,
        next_word INTEGER NOT NULL,
        next_namespace INTEGER NOT NULL,
        generation INTEGER NOT NULL DEFAULT 0,
        version INTEGER NOT NULL DEFAULT (abs(random() / 4)),
        indexed INTEGER,
        key_id TEXT,
        born BLOB
    )""",
    # By the minute: with the exact time, every turn would write the indexes too.
    "CREATE INDEX thread_by_activity ON thread (status, active_at)",
    "CREATE INDEX thread_by_owner ON thread (owner, status, active_at) WHERE owner IS NOT NULL",
    "CREATE INDEX thread_by_wait ON thread (waiting_for, active_at) WHERE waiting_for IS NOT NULL",
    "CREATE INDEX thread_by_tool ON thread (tool, active_at) WHERE tool IS NOT NULL",
    # A subgraph's checkpoint namespace; the root is number 0 and has no row.
    """CREATE TABLE namespace (
        thread INTEGER NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, crc INTEGER NOT NULL,
        PRIMARY KEY (thread, number)
    ) WITHOUT ROWID""",
    # What repeats. Of checkpoints: the names of a graph's channels and nodes, and what else a step
    # has in common with the same step of another turn (shape), metadata (label, as JSON text). Of
    # pending writes: task path, indexes and channels (shape). Of messages: the keys of their
    # metadata (shape).
    """CREATE TABLE word (
        thread INTEGER NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL, crc INTEGER NOT NULL,
        PRIMARY KEY (thread, number)
    ) WITHOUT ROWID""",
    # Which labels are of a run: only these are in it.
    f"CREATE INDEX word_by_run ON word ({RUN}) WHERE {RUN} IS NOT NULL",
    # A message. role: position in messages.snapshot.CLASSES; NULL for a message kept whole in rest.
    # seconds: from the thread's epoch, which is in Unix seconds: small numbers are short. tokens:
    # NULL where it is what role and length of the text say (messages.token_costs.stored_tokens).
    # rest: what the columns do not hold, as a dict; or, with a shape (a word with its keys), the
    # values alone. text and rest, and a value's body, may be compressed (storage.rows.compression):
    # a text is a BLOB then. A row with neither role nor rest is a long text of an input that has
    # not become a message, or not yet: then this row becomes it.
    """CREATE TABLE item (
        key INTEGER PRIMARY KEY,
        message_id BLOB,
        role INTEGER,
        name TEXT,
        text TEXT,
        tool_call_id TEXT,
        seconds INTEGER NOT NULL,
        tokens INTEGER,
        rest BLOB,
        shape INTEGER,
        crc INTEGER NOT NULL
    )""",
    "CREATE TABLE value (key INTEGER PRIMARY KEY, body BLOB NOT NULL, crc INTEGER NOT NULL)",
    # parent: empty for the row before it, by id; so a row is put in between, or deleted, only after
    # the following one's parent is named.
    """CREATE TABLE checkpoint (
        thread INTEGER NOT NULL,
        namespace INTEGER NOT NULL,
        id BLOB NOT NULL,
        parent BLOB,
        step INTEGER,
        label INTEGER NOT NULL,
        shape INTEGER,
        body BLOB NOT NULL,
        crc INTEGER NOT NULL,
        given_id BLOB,
        PRIMARY KEY (thread, namespace, id)
    ) WITHOUT ROWID""",
    # The head is what was written last on it, not what has the highest id: see `ids.key_behind`.
    (
        "CREATE INDEX checkpoint_by_given_id ON checkpoint (thread, namespace, given_id) WHERE"
        " given_id IS NOT NULL"
    ),
    """CREATE TABLE pending_write (
        thread INTEGER NOT NULL,
        namespace INTEGER NOT NULL,
        checkpoint BLOB NOT NULL,
        task BLOB NOT NULL,
        shape INTEGER,
        body BLOB NOT NULL,
        crc INTEGER NOT NULL,
        PRIMARY KEY (thread, namespace, checkpoint, task)
    ) WITHOUT ROWID""",
    "CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "INSERT INTO setting (name, value) VALUES ('token_counter', 'langchain-core/approximate')",
    # For people: the conversation as the sqlite3 shell or Datasette shows it.
    """CREATE VIEW conversation AS
        SELECT
            thread.id AS thread_id,
            item.key & 4294967295 AS number,
            CASE item.role
                WHEN 0 THEN 'human' WHEN 1 THEN 'ai' WHEN 2 THEN 'system'
                WHEN 3 THEN 'tool' WHEN 4 THEN 'function' WHEN 5 THEN 'chat'
                WHEN 6 THEN 'human' WHEN 7 THEN 'ai' WHEN 8 THEN 'system'
                WHEN 9 THEN 'tool' WHEN 10 THEN 'function' WHEN 11 THEN 'chat'
            END AS role,
            item.name AS name,
            CASE WHEN typeof(item.text) = 'text' THEN item.text END AS text,
            item.tool_call_id AS tool_call_id,
            CASE length(item.message_id)
                WHEN 16 THEN lower(
                    substr(hex(item.message_id), 1, 8)
                    || '-' || substr(hex(item.message_id), 9, 4)
                    || '-' || substr(hex(item.message_id), 13, 4)
                    || '-' || substr(hex(item.message_id), 17, 4)
                    || '-' || substr(hex(item.message_id), 21)
                )
                ELSE rtrim(CAST(item.message_id AS TEXT), char(0))
            END AS message_id,
            datetime(thread.epoch + item.seconds, 'unixepoch') AS created_at,
            coalesce(
                item.tokens,
                (
                    length(item.text)
                    + CASE item.role WHEN 0 THEN 4 WHEN 1 THEN 9 WHEN 2 THEN 6 END + 3
                ) / 4 + 3
            ) AS tokens
        FROM thread JOIN item
            ON item.key >= thread.number << 32 AND item.key < (thread.number + 1) << 32
        WHERE item.role IS NOT NULL OR item.rest IS NOT NULL
        ORDER BY item.key""",
)

TOMBSTONE: Final = (
    "thread {hash} NOT NULL, deleted_at BIGINT NOT NULL, owner TEXT, PRIMARY KEY (thread,"
    " deleted_at)"
)
"""That a thread was deleted, and when, by a hash of its id: `storage.checkpoints.tombstones`."""

MIGRATIONS: Final[tuple[Migration, ...]] = (
    Migration("m001_tables", sqlite=_M001_TABLES, postgres=postgres_schema.M001_TABLES),
    Migration("m002_store", sqlite=store_tables.SQLITE, postgres=store_tables.POSTGRES),
    Migration(
        "m003_store_thread",
        sqlite=store_tables.SOURCES_SQLITE,
        postgres=store_tables.SOURCES_POSTGRES,
    ),
    Migration(
        "m004_tombstones",
        sqlite=(f"CREATE TABLE tombstone ({TOMBSTONE.format(hash='BLOB')}) WITHOUT ROWID",),
        postgres=(f"CREATE TABLE IF NOT EXISTS tombstone ({TOMBSTONE.format(hash='BYTEA')})",),
    ),
    Migration(
        "m005_owners",
        sqlite=store_tables.BY_OWNER_SQLITE,
        postgres=(*postgres_schema.M005_OWNERS, *store_tables.BY_OWNER_POSTGRES),
    ),
)

BEFORE_RELEASE: Final = "m001_threads_items_checkpoints"
"""The first migration of databases that were made before the first release."""


def unknown_migrations(applied: Collection[str]) -> StorageError | None:
    """The error of a database with migrations that this release does not know; None if none."""
    unknown = sorted(set(applied) - {migration.name for migration in MIGRATIONS})
    if BEFORE_RELEASE in unknown:
        return StorageUnavailable(
            "the database was made before the first release of langmem-ext, which cannot open it:"
            " export its threads with the version that made it, and import them into a new database"
        )
    if unknown:
        return SchemaTooNew(
            f"the database was written by a newer release (it has {', '.join(unknown)}): upgrade"
            " langmem-ext to open it"
        )
    return None
