"""SQL of the search index that differs between SQLite and PostgreSQL, each part by a marker.

All other markers are in `storage.schema.dialect`.

SQLite's index is FTS5: a row for each message, its rowid the item's key, so that a thread is one
range of rowids. PostgreSQL's is a table whose key begins with the thread, and a GIN index of its
words: those of `messages.search.words` and no others, in any text-search configuration. Besides a
message's words the GIN index has two marks that no text can have, the thread's and its owner's: so
a search in one thread, or in one owner's threads, does not look at the messages of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# -- the index -------------------------------------------------------------------------------------

HINDRANCE: Final = "[hindrance]"
"""Why the index cannot be made here; no row if it can."""

HOLD_THREADS: Final = "[hold threads]"
"""Waits for all writers of threads, and keeps new ones out until the transaction ends."""

IF_FREE: Final = "[if free]"
"""At the end of a SELECT: `storage.schema.dialect.FOR_UPDATE`, without the rows for which one would
have to wait."""

MAKE_WORDS: Final = "[make words]"
MAKE_NEWEST: Final = "[make newest]"
MAKE_LEAVING: Final = "[make leaving]"
"""Makes the words of messages, and for each message id its newest item and its newest marked one;
deleting an item deletes its entries in both."""

UNMAKE_LEAVING: Final = "[unmake leaving]"

CHECK_WORDS: Final = "[check words]"
"""The database's own check of the index."""

MARK_STALE: Final = "[mark stale]"
"""Notes that words of `:thread` were deleted, if the database keeps them until they are merged
away."""

# -- a message's words -----------------------------------------------------------------------------

PUT_WORDS: Final = "[put words]"
"""Indexes the item `:thread`, `:number` by `:words`."""

COPY_WORDS: Final = "[copy words]"
"""Indexes the thread `:target` as `:source` is indexed."""

WORDS_AT: Final = "[words at]"
WORDS_OF_THREAD: Final = "[words of thread]"
WORDS_WITHIN: Final = "[words within]"
"""The words of the item `:thread`, `:number`; of all of `:thread`; of its items from `:low` to
before `:high`."""

WORDS_THREAD: Final = "[words thread]"
WORDS_NUMBER: Final = "[words number]"
WORDS_ONWARD: Final = "[words onward]"
WORDS_BEHIND: Final = "[words behind]"
"""The item that words belong to; words of the threads from `:first` on, in order, and of those
after `found.thread`."""

WORDS_IN_PLACE: Final = "[words in place]"
"""Words, unless the columns derived from them do not match."""

# -- what is found ---------------------------------------------------------------------------------

FOUND: Final = "[found]"
"""The columns of words: the time that orders them among other threads' words, thread, number, and
the words."""

LATEST_FIRST: Final = "[latest first]"

LATEST_OF_THREAD: Final = "[latest of thread]"
LATEST_OF_OWNER: Final = "[latest of owner]"
LATEST_OF_ALL: Final = "[latest of all]"
"""The latest `:latest` messages, as `search`: of `:thread`, or of all; and all of `:owner`'s, who
has few."""

BOUND: Final = "[bound]"
"""The owner whose threads alone the database shows; NULL if it shows all."""

OF_OWNER: Final = "[of owner]"
OF_ROLE: Final = "[of role]"
SINCE: Final = "[since]"
"""Conditions on `search`: words of `:owner`; of a message of `:role`; of a message stored at
`:since` or later."""

MATCHES: Final = "[matches]"
MATCHING: Final = "[matching]"
END_OF_MATCHES: Final = "[end of matches]"
"""The latest messages in the index that have all words: what begins the statement, the first
condition, and what ends it."""


def looked_at(at: int) -> str:
    """Whether words that the index finds contain a term (`:term…`) in order; FTS5 checks that."""
    return f"[looked at:{at}]"


LONG: Final = 200_000
"""Characters of a message's words that PostgreSQL's index has: a tsvector holds a megabyte. Of a
longer one, all words are read."""

_SQLITE: Final = {
    "hindrance": (
        "SELECT 'SQLite has no FTS5 here: use a Python whose sqlite3 has it'"
        " WHERE NOT EXISTS (SELECT 1 FROM pragma_module_list WHERE name = 'fts5')"
    ),
    "hold threads": "SELECT 1",
    "if free": "",
    # The words are the tokenizer's own, so every program that opens the file takes them apart in
    # the same way. Lengths are of no use: ranking is not FTS5's (`storage.search.find`).
    "make words": (
        "CREATE VIRTUAL TABLE search USING fts5(words, columnsize = 0, tokenize = 'ascii')"
    ),
    "make newest": (
        "CREATE TABLE search_message (thread INTEGER NOT NULL, id BLOB NOT NULL, number INTEGER NOT"
        " NULL, marked INTEGER, PRIMARY KEY (thread, id)) WITHOUT ROWID"
    ),
    # FTS5 forgets the words when it merges, which `compact` has it do.
    "make leaving": (
        """CREATE TRIGGER item_leaves_search AFTER DELETE ON item BEGIN
        DELETE FROM search WHERE rowid = OLD.key;
        DELETE FROM search_message WHERE thread = OLD.key >> 32 AND id = OLD.message_id
            AND OLD.key & 4294967295 IN (number, marked);
        INSERT OR REPLACE INTO setting (name, value) VALUES ('search_stale', '');
    END"""
    ),
    "unmake leaving": "DROP TRIGGER IF EXISTS item_leaves_search",
    "check words": "INSERT INTO search (search) VALUES ('integrity-check')",
    "mark stale": "INSERT OR REPLACE INTO setting (name, value) VALUES ('search_stale', '')",
    "put words": (
        "INSERT OR REPLACE INTO search (rowid, words) VALUES ((:thread << 32) + :number, :words)"
    ),
    "copy words": (
        "INSERT INTO search (rowid, words) SELECT rowid + ((:target - :source) << 32), words FROM"
        " search WHERE rowid BETWEEN :source << 32 AND :source << 32 | 4294967295"
    ),
    "words at": "rowid = (:thread << 32) + :number",
    "words of thread": "search.rowid BETWEEN :thread << 32 AND :thread << 32 | 4294967295",
    "words within": "rowid >= (:thread << 32) + :low AND rowid < (:thread << 32) + :high",
    "words thread": "search.rowid >> 32",
    "words number": "rowid & 4294967295",
    "words onward": "rowid >= max(:first, -2147483648) << 32 ORDER BY rowid",
    "words behind": "rowid > (found.thread << 32 | 4294967295) ORDER BY rowid",
    "words in place": "words",
    "found": "0, search.rowid >> 32, search.rowid & 4294967295, search.words",
    "latest first": "search.rowid DESC",
    "latest of thread": (
        "(SELECT rowid, words FROM search WHERE rowid BETWEEN :thread << 32 AND :thread << 32 |"
        " 4294967295 ORDER BY rowid DESC LIMIT :latest) AS search"
    ),
    "latest of owner": (
        "(SELECT search.rowid AS rowid, search.words AS words FROM thread CROSS JOIN search ON"
        " search.rowid BETWEEN thread.number << 32 AND thread.number << 32 | 4294967295 WHERE"
        " thread.owner = :owner) AS search"
    ),
    "latest of all": (
        "(SELECT rowid, words FROM search ORDER BY rowid DESC LIMIT :latest) AS search"
    ),
    "bound": "NULL",
    "of owner": "(SELECT owner FROM thread WHERE number = search.rowid >> 32) = :owner",
    "of role": "(SELECT role FROM item WHERE key = search.rowid) % 6 = :role",
    "since": (
        "(SELECT epoch FROM thread WHERE number = search.rowid >> 32) + (SELECT seconds FROM item"
        " WHERE key = search.rowid) >= :since"
    ),
    "matches": "SELECT 0, search.rowid >> 32, search.rowid & 4294967295, search.words FROM search",
    "matching": "search MATCH :match",
    "looked at": "TRUE",
    "end of matches": " ORDER BY search.rowid DESC LIMIT :limit",
}


def of_sqlite() -> Mapping[str, str]:
    """The SQL of each marker on SQLite."""
    return _SQLITE


_IS_LONG: Final = f"least(octet_length(search.words) / {LONG}, 1) = 1"
"""Whether some of a message's words are not in the GIN index; written so that the planner takes it
for rare."""

_OWNER_NUMBER: Final = "hashtextextended(thread.owner, 0)"

_WORDS_COLUMNS: Final = (
    "thread BIGINT NOT NULL, stored BIGINT NOT NULL, owner BIGINT, number INTEGER NOT NULL, words"
    " TEXT %s NOT NULL, PRIMARY KEY (thread, number)"
)
_NEWEST_COLUMNS: Final = (
    "thread BIGINT NOT NULL, number INTEGER NOT NULL, marked INTEGER, id BYTEA %s NOT NULL, PRIMARY"
    " KEY (thread, id)"
)

# What the GIN index has of a message; the order of words is looked at in the words themselves. Said
# to cost so much that the planner never takes all messages apart in place of a look at the index.
_LEXEMES: Final = f"""CREATE OR REPLACE FUNCTION
                "{{schema}}".search_lexemes(thread bigint, owner bigint, words text)
                RETURNS tsvector
                LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1000 AS $lexemes$ BEGIN
                    RETURN array_to_tsvector(
                        string_to_array(btrim(left(words, {LONG})), ' ')
                        || ('#' || thread::text) || coalesce('@' || owner::text, '#')
                    );
                END $lexemes$;"""

_PARTITIONS: Final = (
    "partitions bigint := (SELECT count(*) FROM pg_inherits WHERE inhparent = {item});"
)


def _create(schema: str, table: str, columns: str) -> str:
    """Makes a table with as many partitions as the messages have."""
    return f"""EXECUTE format('CREATE TABLE "{schema}".{table} ({columns}, FOREIGN KEY
                    (thread) REFERENCES "{schema}".thread ON DELETE CASCADE) %s', packing,
                    CASE WHEN partitions > 0 THEN 'PARTITION BY HASH (thread)' END);
                FOR at IN 0 .. partitions - 1 LOOP
                    EXECUTE format(
                        'CREATE TABLE "{schema}".{table}_%s PARTITION OF "{schema}".{table}
                            FOR VALUES WITH (MODULUS %s, REMAINDER %s)',
                        at, partitions, at
                    );
                END LOOP;"""


_POSTGRES_WORDS: Final = {
    "hold threads": "LOCK TABLE thread IN EXCLUSIVE MODE",
    "if free": "FOR UPDATE SKIP LOCKED",
    "unmake leaving": "DROP TRIGGER IF EXISTS item_leaves_search ON item",
    "check words": "SELECT 1",
    # Vacuum removes them by itself: nothing needs to be noted.
    "mark stale": "DELETE FROM search_message WHERE thread = :thread AND FALSE",
    "put words": (
        "INSERT INTO search (thread, stored, owner, number, words) SELECT item.thread,"
        f" thread.epoch + item.seconds, {_OWNER_NUMBER}, item.number, :words FROM item JOIN thread"
        " ON thread.number = item.thread WHERE item.thread = :thread AND item.number = :number ON"
        " CONFLICT (thread, number) DO UPDATE SET stored = excluded.stored, owner ="
        " excluded.owner, words = excluded.words"
    ),
    "copy words": (
        "INSERT INTO search (thread, stored, owner, number, words)"
        f" SELECT thread.number, search.stored, {_OWNER_NUMBER}, search.number, search.words"
        " FROM search JOIN thread ON thread.number = :target WHERE search.thread = :source"
    ),
    "words at": "thread = :thread AND number = :number",
    "words of thread": "search.thread = :thread",
    "words within": "thread = :thread AND number >= :low AND number < :high",
    "words thread": "search.thread",
    "words number": "number",
    "words onward": "thread >= :first ORDER BY thread",
    "words behind": "search.thread > found.thread ORDER BY search.thread",
    "words in place": (
        "CASE WHEN EXISTS (SELECT 1 FROM thread JOIN item ON item.thread = thread.number WHERE"
        " thread.number = search.thread AND item.number = search.number AND thread.epoch +"
        f" item.seconds = search.stored AND {_OWNER_NUMBER} IS NOT DISTINCT FROM search.owner) THEN"
        " words ELSE '' END"
    ),
}
"""PostgreSQL's SQL of the index and of a message's words in it, the same in every schema."""

_POSTGRES_FOUND: Final = {
    "found": "search.stored, search.thread, search.number, search.words",
    "latest first": "search.stored DESC, search.thread DESC, search.number DESC",
    "latest of thread": (
        "(SELECT stored, thread, number, words FROM search WHERE thread = :thread ORDER BY number"
        " DESC LIMIT :latest) AS search"
    ),
    # Thread by thread, however many the planner expects.
    "latest of owner": (
        "(SELECT one.stored, one.thread, one.number, one.words FROM thread CROSS JOIN LATERAL"
        " (SELECT stored, thread, number, words FROM search WHERE search.thread = thread.number"
        " OFFSET 0) AS one WHERE thread.owner = :owner) AS search"
    ),
    "latest of all": (
        "(SELECT stored, thread, number, words FROM search ORDER BY stored DESC LIMIT :latest) AS"
        " search"
    ),
    "bound": "(SELECT owner FROM grantee WHERE role = current_user)",
    "of owner": "(SELECT owner FROM thread WHERE number = search.thread) = :owner",
    "of role": (
        "(SELECT role FROM item WHERE thread = search.thread AND number = search.number) % 6 ="
        " :role"
    ),
    "since": "search.stored >= :since",
    # The words first, and all of them: other conditions are checked on what has these.
    "matches": (
        "WITH found AS MATERIALIZED (SELECT search.stored, search.thread, search.number FROM search"
    ),
    "looked at": "pg_catalog.position(search.words, :term?) > 0",
    "end of matches": (
        ") SELECT found.stored, found.thread, found.number, (SELECT words FROM search WHERE"
        " search.thread = found.thread AND search.number = found.number) FROM found ORDER BY"
        " found.stored DESC, found.thread DESC, found.number DESC LIMIT :limit"
    ),
}
"""PostgreSQL's SQL of what is found."""

# `stored` is the item's time in Unix seconds, `owner` a number of the thread's owner. What writers
# add to the GIN index is gathered first, in so few pages that a search looks through them at once.
_MAKE_WORDS: Final = """DO $$
DECLARE
    packing text := (
        SELECT max('COMPRESSION lz4') FROM pg_settings
        WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)
    );
    {partitions}
BEGIN
    {table}
    {function}
    CREATE INDEX search_by_word ON search USING gin (({lexemes}))
        WITH (gin_pending_list_limit = 256);
    CREATE INDEX search_by_time ON search (stored);
    CREATE INDEX search_by_length ON search (thread) WHERE {is_long};
END $$"""

_MAKE_NEWEST: Final = """DO $$
DECLARE
    packing text;
    {partitions}
BEGIN
    {table}
END $$"""

# Who may read and write messages may do so with their words: of all threads, or of some.
_MAKE_LEAVING: Final = """DO $make$
DECLARE
    given record;
BEGIN
    CREATE OR REPLACE FUNCTION "{schema}".item_leaves_search() RETURNS trigger
    LANGUAGE plpgsql AS $leave$ BEGIN
        DELETE FROM search WHERE thread = OLD.thread AND number = OLD.number;
        DELETE FROM search_message WHERE thread = OLD.thread AND id = OLD.message_id
            AND OLD.number IN (number, marked);
        RETURN NULL;
    END $leave$;
    CREATE TRIGGER item_leaves_search AFTER DELETE ON item FOR EACH ROW
        EXECUTE FUNCTION "{schema}".item_leaves_search();
    FOR given IN
        SELECT privilege_type AS what,
            CASE grantee
                WHEN 0 THEN 'PUBLIC' ELSE CAST(CAST(grantee AS regrole) AS text)
            END AS whom
        FROM pg_class, aclexplode(relacl) WHERE oid = {item} AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT %s ON "{schema}".search, "{schema}".search_message TO %s',
            given.what, given.whom);
    END LOOP;
    IF (SELECT relrowsecurity FROM pg_class WHERE oid = {item}) THEN
        ALTER TABLE search ENABLE ROW LEVEL SECURITY;
        ALTER TABLE search_message ENABLE ROW LEVEL SECURITY;
    END IF;
    FOR given IN
        SELECT 'search' || ending AS which, polname AS name, pg_get_expr(polqual, polrelid) AS what,
            (
                SELECT string_agg(CAST(CAST(one AS regrole) AS text), ', ')
                FROM unnest(polroles) AS one
            ) AS whom
        FROM pg_policy, unnest(string_to_array(',_message', ',')) AS ending WHERE polrelid = {item}
    LOOP
        EXECUTE format('CREATE POLICY %I ON "{schema}".%I TO %s USING (%s)',
            given.name, given.which, given.whom, replace(given.what, 'item.', given.which || '.'));
    END LOOP;
END $make$"""

_HINDRANCE: Final = (
    "SELECT 'the role ' || CAST(CAST(relowner AS regrole) AS text) || ' owns the tables: open the"
    " database once as that role, and search it there, or call Threads.enable_search' FROM pg_class"
    " WHERE oid = {item} AND NOT (pg_has_role(relowner, 'USAGE') AND"
    " has_schema_privilege(relnamespace, 'CREATE'))"
)


def of_postgres(schema: str) -> Mapping[str, str]:
    """The SQL of each marker on PostgreSQL, with the tables in a schema."""
    item = f"CAST('\"{schema}\".item' AS regclass)"
    lexemes = f'"{schema}".search_lexemes(search.thread, search.owner, search.words)'
    partitions, function = _PARTITIONS.format(item=item), _LEXEMES.format(schema=schema)
    words, newest = (
        _create(schema, "search", _WORDS_COLUMNS),
        _create(schema, "search_message", _NEWEST_COLUMNS),
    )
    return {
        **_POSTGRES_WORDS,
        **_POSTGRES_FOUND,
        "hindrance": _HINDRANCE.format(item=item),
        "make words": _MAKE_WORDS.format(
            partitions=partitions, table=words, function=function, lexemes=lexemes, is_long=_IS_LONG
        ),
        "make newest": _MAKE_NEWEST.format(partitions=partitions, table=newest),
        "make leaving": _MAKE_LEAVING.format(schema=schema, item=item),
        "matching": (
            f"({lexemes} @@ CAST(:query || coalesce(' & ''@' || CAST(hashtextextended(:owner, 0) AS"
            f" text) || '''', '') AS tsquery) OR {_IS_LONG})"
        ),
    }
