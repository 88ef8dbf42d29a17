"""Where SQLite and PostgreSQL differ, each place by a name: all other SQL is one text for both.

A statement has a marker in square brackets wherever the two differ; a dialect inserts its own SQL
there. A marker may have an argument after a colon, which replaces the question mark in that SQL.

On SQLite a thread's items and values are one range of rowids, `key = thread << 32 | number`, so
they need no second index. On PostgreSQL thread and number are columns of their own. So a row's
first column (`KEY`) is a key or a number: a reader takes the number out of it (`NUMBER`), and knows
the thread from the context.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Final

from langmem_ext.errors import InvalidInput
from langmem_ext.storage.schema import search_dialect

KEY_BITS: Final = 32
"""Bits of a key that are the number."""

NUMBER: Final = (1 << KEY_BITS) - 1
"""Takes the number out of a key; a number stays as it is."""

# -- rows of `item` and `value` --------------------------------------------------------------------

KEY: Final = "[key]"
"""The key of a row within its thread, which also orders rows."""

PLACE: Final = "[place]"
PLACE_VALUES: Final = "[:place]"
"""The key columns of a new row, and their values, from `:thread` and `:number`."""

ROW_PLACE: Final = "[row place]"
"""Thread and number of a row, as two columns."""

COPIED_PLACE: Final = "[copied place]"
"""The place of a row's copy in the thread `:target`."""

AT: Final = "[at]"
"""The row `:thread`, `:number`."""

WITHIN: Final = "[within]"
"""Rows of `:thread` from `:low` to before `:high`."""

OF_THREAD: Final = "[of thread]"
"""All rows of `:thread`."""

BEHIND: Final = "[behind]"
"""Rows of `:thread` after `:after`."""

ITEM_OF_THREAD: Final = "[item of thread]"
"""Joins `item` to `thread`."""

ROW_THREAD: Final = "[row thread]"
FROM_THREAD: Final = "[from thread]"
"""A row's thread; rows of the threads from `:first` on, in order."""

PLACE_1_2: Final = "[:numbered place]"
AT_1_2: Final = "[numbered at]"
OF_ID_1_2: Final = "[numbered of id]"
THREAD_1_2: Final = "[numbered thread]"
THREAD_OF_ROW: Final = "[numbered thread of row]"
"""The same with numbered parameters: a key's values, and the row with it, by `?1` and `?2`, a
thread and a number; the thread of the id `?2`, and its number, also if a row of it is joined:
PostgreSQL plans for one partition if a parameter names the thread. `?1` is the number that follows
from the id (`ids.thread_number`), which SQLite ignores."""

# -- threads ---------------------------------------------------------------------------------------

OF_ID: Final = "[of id]"
"""The thread `:id`. PostgreSQL's driver adds `:id_number` (`ids.thread_number`)."""

CHECKPOINT_OF_ID: Final = "[checkpoint of id]"
"""A checkpoint, joined to its thread, of the thread `:id`. PostgreSQL's planner also gets the
number, so that it reads a list in its order."""

NEW_THREAD: Final = "[new thread]"
NEW_THREAD_VALUES: Final = "[:new thread]"
"""The first columns of a new thread, and their values, from `:id` and `:new_generation`: if a
deleted thread's number is used again, with its id, the generation is one that nobody has cached."""

NUMBERED: Final = "[numbered]"
"""The thread whose number is that of the thread `:id`, whichever that is."""

OWNER_VALUE: Final = "[:owner]"
"""A new row's owner: `:owner`, or else, where that is NULL or empty, the owner whose rows alone the
role of PostgreSQL may write (`postgres.roles`)."""

FOR_UPDATE: Final = "[for update]"
"""At the end of a SELECT: nobody else writes to the thread until the operation has ended."""

HELD_ID: Final = "[held id]"
"""Behind SELECT: nobody else holds the id `:id`, of which there is no thread to be held, until the
operation has ended."""

LOST_THREAD: Final = "[lost thread]"
"""The number of the thread `:id` that is made for rows of the number `:thread`, which have lost
theirs."""

LAST_THREAD: Final = "[last thread]"
"""The highest number that a thread can have."""

# -- pending writes --------------------------------------------------------------------------------

UP_TO: Final = "[up to]"
ONWARD: Final = "[onward]"
"""Rows of pending writes up to a checkpoint's, and from them on, in the order of their keys. SQLite
also looks into other threads, where a flipped bit may have moved a row; PostgreSQL keeps to one
thread, which may be on a machine of its own."""

# -- functions and operators -----------------------------------------------------------------------

UNINDEXED: Final = "[+]"
"""Before a column: not by its index. PostgreSQL's planner counts, and is left alone."""

INSTR: Final = "[instr]"
"""A function that returns where in a text, or blob, a second one begins, or 0."""

BLOB: Final = "[blob]"
"""The type of a blob."""

LIKE: Final = "[like]"
"""LIKE, ignoring case."""

COSINE: Final = "[cosine]"
"""The cosine of a store's vector and `:query`, if the database compares vectors
(`Driver.compares_vectors`)."""

RUN: Final = "[run]"
"""The run that a word's body is the label of; NULL for every other word."""


def label(at: int) -> str:
    """A scalar of the label `word.body`, by its name `:name…`; NULL if there is none."""
    return f"[label:{at}]"


def scalar(at: int) -> str:
    """The value to compare `label` with: the JSON text `:value…`."""
    return f"[scalar:{at}]"


def bytes_of(column: str) -> str:
    """How many bytes a text has, or a blob."""
    return f"[bytes:{column}]"


def field(at: int) -> str:
    """The value of a store's item under the name `:name…`, to compare with `scalar`.

    The item's `value` must be JSON.
    """
    return f"[field:{at}]"


def truth(at: int) -> str:
    """Whether the field is true or false, if these are not numbers to the database."""
    return f"[truth:{at}]"


THREAD_SIZE: Final = "[thread size]"
ITEM_SIZE: Final = "[item size]"
VALUE_SIZE: Final = "[value size]"
WORD_SIZE: Final = "[word size]"
CHECKPOINT_SIZE: Final = "[checkpoint size]"
WRITE_SIZE: Final = "[write size]"
"""About how many bytes are free when a row is deleted: its size with its entries in indexes, except
the search index."""


SCHEMA: Final = "[schema]"
"""PostgreSQL's schema of the tables."""

BY_THREAD: Final = "[by thread]"
BY_NUMBER: Final = "[by number]"
"""Follows the columns of a new table on PostgreSQL: partitions its rows by their thread, if the
database is partitioned."""

# -- whole statements ------------------------------------------------------------------------------

INTEGRITY: Final = "[integrity]"
"""The database's own check of itself: `ok`, or what is wrong."""

PAGES: Final = "[pages]"
"""Size of a page, how many there are, and how many of them are free."""

HAS_SIZES: Final = "[has sizes]"
SIZES: Final = "[sizes]"
"""Whether the database knows the bytes of each table and index; and these bytes."""

SIZE: Final = "[size]"
"""Bytes of the whole database."""

# -- dialects --------------------------------------------------------------------------------------

STATEMENTS: Final = 1024
"""How many rendered statements a dialect caches."""

_MARKER: Final = re.compile(r"\[(:?[a-z+][a-z ]*)(?::(\w+))?\]")


class Dialect:
    """One database's SQL.

    Args:
        name: Its name.
        fragments: The SQL of each marker.
        finish: The last change of a statement.

    Attributes:
        render: Renders a statement in the dialect's SQL; cached.
    """

    def __init__(
        self, name: str, fragments: Mapping[str, str], finish: Callable[[str], str] = str
    ) -> None:
        self.name = name
        self._fragments = fragments
        self._finish = finish
        self.render: Callable[[str], str] = lru_cache(maxsize=STATEMENTS)(self._render)

    def _render(self, sql: str) -> str:
        return self._finish(_MARKER.sub(self._fragment, sql))

    def _fragment(self, marker: re.Match[str]) -> str:
        fragment = self._fragments[marker[1]]
        return fragment if marker[2] is None else fragment.replace("?", marker[2])


def _lengths(*columns: str) -> str:
    return " + ".join(f"coalesce(length(CAST({column} AS BLOB)), 0)" for column in columns)


def _held(more: int, *columns: str) -> str:
    """The size of a SQLite row with these columns, plus some bytes."""
    return f"({more} + ({_lengths(*columns)}) * 34 / 33)"


SQLITE: Final = Dialect(
    "sqlite",
    {
        "key": "key",
        "place": "key",
        ":place": "(:thread << 32) + :number",
        ":numbered place": "(?1 << 32) + ?2",
        "numbered at": "key = (?1 << 32) + ?2",
        "numbered of id": "number = (SELECT number FROM thread WHERE id = ?2) AND +id = ?2",
        "numbered thread of row": "checkpoint.thread",
        "numbered thread": "(SELECT number FROM thread WHERE id = ?2)",
        "row place": "key >> 32, key & 4294967295",
        "copied place": "(:target << 32) + (key & 4294967295)",
        "at": "key = (:thread << 32) + :number",
        "within": "key >= (:thread << 32) + :low AND key < (:thread << 32) + :high",
        "of thread": "key BETWEEN :thread << 32 AND :thread << 32 | 4294967295",
        "behind": "key > (:thread << 32) + :after AND key <= :thread << 32 | 4294967295",
        "item of thread": (
            "item.key BETWEEN thread.number << 32 AND thread.number << 32 | 4294967295"
        ),
        "row thread": "key >> 32",
        "from thread": "key >= max(:first, -2147483648) << 32 ORDER BY key",
        # The index alone may be damaged, and lead to another thread's row: its own id is looked at,
        # too.
        "of id": "number = (SELECT number FROM thread WHERE id = :id) AND +id = :id",
        "checkpoint of id": (
            "checkpoint.thread = (SELECT number FROM thread WHERE id = :id) AND +thread.id = :id"
        ),
        "new thread": "id",
        ":new thread": ":id",
        "numbered": "id = :id",
        ":owner": "nullif(:owner, '')",
        "for update": "",
        "held id": "1",
        "lost thread": ":thread",
        "last thread": "2147483647",
        "up to": "(thread, namespace, checkpoint) <= (:thread, :namespace, :checkpoint)",
        "onward": "(thread, namespace, checkpoint) >= (:thread, :namespace, :checkpoint)",
        "+": "+",
        "instr": "instr",
        "blob": "BLOB",
        "like": "LIKE",
        "run": (
            "CASE WHEN substr(body, 1, 1) = x'7B' AND json_valid(CAST(body AS TEXT)) THEN"
            " json_extract(CAST(body AS TEXT), '$.run_id') END"
        ),
        "label": "json_extract(CAST(word.body AS TEXT), '$.\"' || :name? || '\"')",
        "scalar": "json_extract(:value?, '$')",
        "field": "json_extract(value, '$.\"' || :name? || '\"')",
        "truth": "FALSE",
        # NULL for a vector of length 0.
        "cosine": "coalesce(1 - vec_distance_cosine(vector, :query), 0)",
        "bytes": "length(CAST(? AS BLOB))",
        # Told by `dbstat` from conversations of 40 to 20,000 characters a message: what a row takes
        # beyond its texts and blobs, and what pages leave empty. A title may go before its thread
        # does.
        "thread size": f"170 + 2 * {_lengths('id')} + {_lengths('metadata')}",
        "item size": _held(32, "message_id", "name", "text", "tool_call_id", "rest"),
        "value size": _held(20, "body"),
        "word size": _held(23, "body"),
        "checkpoint size": _held(37, "id", "body", "given_id", "given_id"),
        "write size": _held(46, "task", "body"),
        "integrity": "PRAGMA integrity_check(100)",
        "pages": (
            "SELECT (SELECT page_size FROM pragma_page_size), page_count, freelist_count FROM"
            " pragma_page_count, pragma_freelist_count"
        ),
        "has sizes": "SELECT 1 FROM pragma_module_list WHERE name = 'dbstat'",
        "sizes": "SELECT name, sum(pgsize) FROM dbstat WHERE aggregate = TRUE GROUP BY name",
        "size": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
        **search_dialect.of_sqlite(),
    },
)

DEFAULT_SCHEMA: Final = "langmem_ext"
"""The default schema of the tables in PostgreSQL."""

TABLES: Final = (
    "thread",
    "namespace",
    "word",
    "item",
    "value",
    "checkpoint",
    "pending_write",
    "setting",
    "search",
    "search_message",
    "store_item",
    "store_vector",
    "store_thread",
    "tombstone",
    "langmem_migration",
    "grantee",
    "conversation",
)
"""The tables and the view that statements name."""


def _stored(*columns: str) -> str:
    """The size of columns in PostgreSQL, as a term to add.

    It includes the space that pages leave empty, and more for values that are stored separately, in
    pieces.
    """
    more = "CASE WHEN {0} > 2000 THEN 800 + {0} / 32 ELSE greatest({0} - 1000, 0) / 8 END"
    sizes = [f"pg_column_size({column})" for column in columns]
    return "".join(f" + coalesce({size} + {more.format(size)}, 0)" for size in sizes)


THREAD_STORAGE: Final = "fillfactor = 90"
"""How PostgreSQL keeps the rows of threads: of ten updates of one, nine stay in its page."""

_TABLE: Final = re.compile(
    rf"\b(FROM|JOIN|INTO|UPDATE|TABLE|VIEW|EXISTS|ON) ({'|'.join(TABLES)})\b(?!\.)"
)
_PARAMETER: Final = re.compile(r"(?<!:):([a-z_]\w*)")
_NUMBERED: Final = re.compile(r"\?(\d+)")
_SCHEMA_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")


_POSTGRES: Final = {
    "key": "number",
    "place": "thread, number",
    ":place": ":thread, :number",
    ":numbered place": "?1, ?2",
    "numbered at": "thread = ?1 AND number = ?2",
    "numbered of id": "number = ?1 AND id = ?2",
    "numbered thread of row": "?1",
    "numbered thread": "?1",
    "row place": "thread, number",
    "copied place": ":target, number",
    "at": "thread = :thread AND number = :number",
    "within": "thread = :thread AND number >= :low AND number < :high",
    "of thread": "thread = :thread",
    "behind": "thread = :thread AND number > :after",
    "item of thread": "item.thread = thread.number",
    "row thread": "thread",
    "from thread": "thread >= :first ORDER BY thread",
    "of id": "number = :id_number AND id = :id",
    "checkpoint of id": "checkpoint.thread = :id_number AND thread.id = :id",
    "new thread": "number, id, generation",
    ":new thread": ":id_number, :id, :new_generation",
    "numbered": "number = :id_number",
    ":owner": (
        "coalesce(nullif(:owner, ''), (SELECT owner FROM grantee WHERE role = current_user))"
    ),
    "for update": "FOR UPDATE",
    "held id": "1 FROM pg_advisory_xact_lock(:id_number)",
    "lost thread": ":id_number",
    "last thread": "9223372036854775807",
    "up to": "thread = :thread AND (namespace, checkpoint) <= (:namespace, :checkpoint)",
    "onward": "thread = :thread AND (namespace, checkpoint) >= (:namespace, :checkpoint)",
    "+": "",
    "instr": "pg_catalog.position",
    "blob": "BYTEA",
    "like": "ILIKE",
    "scalar": "CAST(:value? AS jsonb)",
    "field": "(CAST(value AS jsonb) -> CAST(:name? AS text))",
    "truth": "jsonb_typeof(CAST(value AS jsonb) -> CAST(:name? AS text)) = 'boolean'",
    "bytes": "octet_length(?)",
    # The header of a row, its columns of a fixed length, its entry in the key's index; and the
    # columns as they are stored, compressed or not. All together it is what the tables take when
    # they have just been written anew, give or take a few per cent.
    "thread size": (
        "600 + pg_column_size(id) + coalesce(pg_column_size(title), 0) +"
        " coalesce(pg_column_size(metadata), 0)"
    ),
    "item size": f"(112{_stored('message_id', 'name', 'text', 'tool_call_id', 'rest')})",
    "value size": f"(90{_stored('body')})",
    "word size": f"(90{_stored('body')})",
    "checkpoint size": f"(141{_stored('body')})",
    "write size": f"(160{_stored('body')})",
    "integrity": "SELECT 'ok'",
    "has sizes": "SELECT 1",
}
"""PostgreSQL's SQL, the same in every schema."""


@cache
def postgres(schema: str = DEFAULT_SCHEMA, *, partitioned: bool = False) -> Dialect:
    """PostgreSQL's SQL, with the tables in a schema of their own and psycopg's parameters.

    Args:
        schema: The schema's name.
        partitioned: Whether new tables have partitions; other statements do not depend on it.

    Raises:
        InvalidInput: The schema's name is invalid.
    """
    if not _SCHEMA_NAME.fullmatch(schema):
        raise InvalidInput(
            "a schema name must have lower-case letters, digits and _, and must not start with a"
            f" digit, unlike {schema!r}"
        )

    def finish(sql: str) -> str:
        named = _TABLE.sub(rf'\1 "{schema}".\2', sql)
        if _NUMBERED.search(named):
            return _NUMBERED.sub(r"$\1", named)
        return _PARAMETER.sub(r"%(\1)s", named.replace("%", "%%"))

    tables = f"FROM pg_class WHERE relnamespace = '{schema}'::regnamespace AND relkind = 'r'"
    fragments = {
        **_POSTGRES,
        "schema": f'"{schema}"',
        "by thread": "PARTITION BY HASH (thread)" if partitioned else "",
        "by number": "PARTITION BY HASH (number)" if partitioned else f"WITH ({THREAD_STORAGE})",
        "run": f"(\"{schema}\".label(body, 'run_id') #>> '{{}}')",
        "label": f'"{schema}".label(word.body, :name?)',
        # The query's vector is made once.
        "cosine": f'"{schema}".cosine(near, (SELECT "{schema}".near(:query)))',
        "pages": f"SELECT 1, coalesce(sum(pg_total_relation_size(oid)), 0)::bigint, 0 {tables}",
        # A partition's under the name of what it is one of.
        "sizes": (
            "SELECT (SELECT relname FROM pg_class AS whole WHERE whole.oid ="
            " coalesce(pg_partition_root(part.oid), part.oid)) AS name, sum(CASE relkind WHEN 'r'"
            " THEN pg_table_size(oid) ELSE pg_relation_size(oid) END)::bigint FROM pg_class AS"
            f" part WHERE relnamespace = '{schema}'::regnamespace AND relkind IN ('r', 'i') GROUP"
            " BY name"
        ),
        "size": f"SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint {tables}",
        **search_dialect.of_postgres(schema),
    }
    return Dialect("postgres", fragments, finish)


POSTGRES: Final = postgres()
