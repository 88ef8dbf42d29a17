"""The tables on PostgreSQL: those of `storage.schema.migrations`, column by column.

Their keys are a thread's number and a row's.

All are in one schema of their own, which the dialect puts before their names. Numbers and checks
are four bytes, a thread's number, times and steps eight; fixed columns come before those that vary
in length, so that no byte is lost to alignment.
"""

from __future__ import annotations

from typing import Final

from langmem_ext.storage.schema.dialect import (
    BY_NUMBER,
    BY_THREAD,
    RUN,
    SCHEMA,
    THREAD_STORAGE,
)

CREATE_SCHEMA: Final = f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"
MIGRATION_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS langmem_migration (name TEXT PRIMARY KEY, applied_at BIGINT NOT"
    " NULL)"
)


LABEL: Final = rf"""FUNCTION {SCHEMA}.label(body bytea, name text) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
        DECLARE
            said text;
            found jsonb;
        BEGIN
            IF length(body) = 0 OR get_byte(body, 0) <> 123 THEN
                RETURN NULL;
            END IF;
            BEGIN
                said := convert_from(body, 'UTF8');
                IF strpos(said, E'\\u') > 0 THEN
                    -- Behind a backslash that stands for itself no escape begins.
                    said := replace(said, E'\\\\', E'\\u005c');
                    said :=
                        regexp_replace(said, E'\\\\u(0000|d[89ab]..(?!\\\\ud[c-f]))', '?', 'gi');
                    said := regexp_replace(said, E'(?<!\\\\ud[89ab]..)\\\\ud[c-f]..', '?', 'gi');
                END IF;
                found := said::jsonb -> name;
            EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
                RETURN NULL;
            END;
            RETURN CASE found
                WHEN 'true' THEN '1' WHEN 'false' THEN '0' WHEN 'null' THEN NULL ELSE found
            END;
        END
    $$"""
"""A scalar of a label, by its name: NULL if the label has none, or the word is not a label. As in
SQLite, true is 1. What jsonb does not accept (NUL characters, halves of a character) becomes a
question mark."""


def partition(table: str, at: int, count: int) -> str:
    """Makes one of a table's partitions."""
    kept = f" WITH ({THREAD_STORAGE})" if table == "thread" else ""
    whole, part = f"{SCHEMA}.{table}", f"{SCHEMA}.{table}_{at}"
    return (
        f"CREATE TABLE {part} PARTITION OF {whole} FOR VALUES WITH (MODULUS {count}, REMAINDER"
        f" {at}){kept}"
    )


M001_TABLES: Final = (
    # The number follows from the id (`ids.thread_number`), so the key finds both.
    f"""CREATE TABLE thread (
        number BIGINT PRIMARY KEY,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        active_at BIGINT NOT NULL,
        epoch BIGINT NOT NULL,
        items BIGINT NOT NULL,
        tokens BIGINT NOT NULL,
        generation BIGINT NOT NULL DEFAULT 0,
        version BIGINT NOT NULL DEFAULT CAST(random() * 4000000000000000000 AS BIGINT),
        next_item INTEGER NOT NULL,
        next_value INTEGER NOT NULL,
        next_word INTEGER NOT NULL,
        next_namespace INTEGER NOT NULL,
        titled_by INTEGER,
        head_messages INTEGER,
        indexed INTEGER,
        id TEXT NOT NULL,
        status TEXT NOT NULL,
        owner TEXT,
        title TEXT,
        forked_from TEXT,
        waiting_for TEXT,
        tool TEXT,
        tags TEXT,
        metadata TEXT,
        key_id TEXT,
        born BYTEA
    ) {BY_NUMBER}""",
    "CREATE INDEX thread_by_activity ON thread (status, active_at)",
    "CREATE INDEX thread_by_owner ON thread (owner, status, active_at) WHERE owner IS NOT NULL",
    "CREATE INDEX thread_by_wait ON thread (waiting_for, active_at) WHERE waiting_for IS NOT NULL",
    "CREATE INDEX thread_by_tool ON thread (tool, active_at) WHERE tool IS NOT NULL",
    f"""CREATE TABLE namespace (
        thread BIGINT NOT NULL, number INTEGER NOT NULL, crc INTEGER NOT NULL, name TEXT NOT NULL,
        PRIMARY KEY (thread, number)
    ) {BY_THREAD}""",
    f"""CREATE TABLE word (
        thread BIGINT NOT NULL, number INTEGER NOT NULL, crc INTEGER NOT NULL, body BYTEA NOT NULL,
        PRIMARY KEY (thread, number)
    ) {BY_THREAD}""",
    f"CREATE {LABEL}",
    f"CREATE INDEX word_by_run ON word ({RUN}) WHERE {RUN} IS NOT NULL",
    f"""CREATE TABLE item (
        thread BIGINT NOT NULL,
        seconds BIGINT NOT NULL,
        number INTEGER NOT NULL,
        crc INTEGER NOT NULL,
        tokens INTEGER,
        shape INTEGER,
        role SMALLINT,
        message_id BYTEA,
        name TEXT,
        text TEXT,
        tool_call_id TEXT,
        rest BYTEA,
        PRIMARY KEY (thread, number)
    ) {BY_THREAD}""",
    f"""CREATE TABLE value (
        thread BIGINT NOT NULL, number INTEGER NOT NULL, crc INTEGER NOT NULL, body BYTEA NOT NULL,
        PRIMARY KEY (thread, number)
    ) {BY_THREAD}""",
    f"""CREATE TABLE checkpoint (
        thread BIGINT NOT NULL,
        step BIGINT,
        namespace INTEGER NOT NULL,
        label INTEGER NOT NULL,
        shape INTEGER,
        crc INTEGER NOT NULL,
        id BYTEA NOT NULL,
        parent BYTEA,
        body BYTEA NOT NULL,
        given_id BYTEA,
        PRIMARY KEY (thread, namespace, id)
    ) {BY_THREAD}""",
    (
        "CREATE INDEX checkpoint_by_given_id ON checkpoint (thread, namespace, given_id) WHERE"
        " given_id IS NOT NULL"
    ),
    f"""CREATE TABLE pending_write (
        thread BIGINT NOT NULL,
        namespace INTEGER NOT NULL,
        shape INTEGER,
        crc INTEGER NOT NULL,
        checkpoint BYTEA NOT NULL,
        task BYTEA NOT NULL,
        body BYTEA NOT NULL,
        PRIMARY KEY (thread, namespace, checkpoint, task)
    ) {BY_THREAD}""",
    # What is longer than 2,000 bytes or so is compressed by the server: with lz4, where it was
    # built with it, in half of the time.
    """DO $$ BEGIN
        IF EXISTS (
            SELECT 1 FROM pg_settings
            WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)
        ) THEN
            ALTER TABLE item
                ALTER COLUMN text SET COMPRESSION lz4, ALTER COLUMN rest SET COMPRESSION lz4;
            ALTER TABLE value ALTER COLUMN body SET COMPRESSION lz4;
            ALTER TABLE checkpoint ALTER COLUMN body SET COMPRESSION lz4;
            ALTER TABLE pending_write ALTER COLUMN body SET COMPRESSION lz4;
        END IF;
    END $$""",
    # Which roles may use all of this, and how: `postgres.roles` makes the server enforce it.
    # owner: of the only threads that the role sees; NULL: it sees all.
    """CREATE TABLE grantee (
        role NAME PRIMARY KEY,
        rights TEXT NOT NULL CHECK (rights IN ('reader', 'writer')),
        owner TEXT CHECK (owner <> '')
    )""",
    "CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "INSERT INTO setting (name, value) VALUES ('token_counter', 'langchain-core/approximate')",
    """CREATE VIEW conversation AS
        SELECT
            thread.id AS thread_id,
            item.number AS number,
            CASE item.role
                WHEN 0 THEN 'human' WHEN 1 THEN 'ai' WHEN 2 THEN 'system'
                WHEN 3 THEN 'tool' WHEN 4 THEN 'function' WHEN 5 THEN 'chat'
                WHEN 6 THEN 'human' WHEN 7 THEN 'ai' WHEN 8 THEN 'system'
                WHEN 9 THEN 'tool' WHEN 10 THEN 'function' WHEN 11 THEN 'chat'
            END AS role,
            item.name AS name,
            item.text AS text,
            item.tool_call_id AS tool_call_id,
            CASE length(item.message_id)
                WHEN 16 THEN CAST(CAST(encode(item.message_id, 'hex') AS uuid) AS text)
                ELSE encode(rtrim(item.message_id, CAST('\\x00' AS bytea)), 'escape')
            END AS message_id,
            to_timestamp(thread.epoch + item.seconds) AS created_at,
            coalesce(
                item.tokens,
                (
                    length(item.text)
                    + CASE item.role WHEN 0 THEN 4 WHEN 1 THEN 9 WHEN 2 THEN 6 END + 3
                ) / 4 + 3
            ) AS tokens
        FROM thread JOIN item ON item.thread = thread.number
        WHERE item.role IS NOT NULL OR item.rest IS NOT NULL
        ORDER BY item.thread, item.number""",
    # A reader of the view sees the rows that it sees in the tables, not those that the view's owner
    # sees. PostgreSQL 14 has no such option.
    """DO $$ BEGIN
        IF current_setting('server_version_num')::int >= 150000 THEN
            ALTER VIEW conversation SET (security_invoker = true);
        END IF;
    END $$""",
)

_BELONG: Final = """DO $$ DECLARE one regclass; BEGIN
    FOR one IN
        SELECT oid FROM pg_class WHERE relnamespace = '{schema}'::regnamespace
        AND relkind IN ('r', 'p') AND NOT relispartition AND relname = ANY (ARRAY['namespace',
        'word', 'item', 'value', 'checkpoint', 'pending_write', 'search', 'search_message'])
    LOOP
        EXECUTE format('DELETE FROM %s AS lost WHERE NOT EXISTS (SELECT FROM {schema}.thread
            WHERE number = lost.thread)', one);
        EXECUTE format('ALTER TABLE %s ADD FOREIGN KEY (thread) REFERENCES {schema}.thread
            ON DELETE CASCADE', one);
    END LOOP;
END $$""".replace("{schema}", SCHEMA)

_ONE_EACH: Final = """DO $$ BEGIN
    IF (SELECT relkind FROM pg_class WHERE oid = '{schema}.thread'::regclass) = 'r' THEN
        ALTER TABLE {schema}.thread ADD CONSTRAINT thread_by_id EXCLUDE USING hash (id WITH =);
    END IF;
END $$""".replace("{schema}", SCHEMA)

M005_OWNERS: Final = (
    # What is listed by owner is then read by id: no role gives a thread the id of another's. (A
    # hash takes ids of any length; tables with partitions can have no such constraint.)
    _ONE_EACH,
    # No row outlives its thread, whatever SQL a role sends: the next thread of its id would have
    # it.
    _BELONG,
    # An owner's role cannot be the first to use the key of another's.
    "UPDATE tombstone SET owner = '' WHERE owner IS NULL",
    "ALTER TABLE tombstone DROP CONSTRAINT tombstone_pkey, ADD PRIMARY KEY (thread, deleted_at,"
    " owner)",
)
