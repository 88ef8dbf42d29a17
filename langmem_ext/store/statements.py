"""The SQL of the store, which SQLite and PostgreSQL share except for its markers.

`:owner` is the caller's, who sees no items of others; NULL: it sees all; empty: nobody's. `:now` is
a time: items that have expired by then are not seen, even if they are not deleted yet.
"""

from __future__ import annotations

from typing import Final

from langmem_ext.storage.prune.store_items import OWNED
from langmem_ext.storage.schema.dialect import (
    BLOB,
    COSINE,
    FOR_UPDATE,
    INSTR,
    OF_ID,
    OWNER_VALUE,
    UNINDEXED,
)

_VISIBLE: Final = f"(expires_at IS NULL OR expires_at > :now) AND {OWNED}"
_WITHIN: Final = f"path >= :low AND path < :high AND {_VISIBLE}"
_ITEM: Final = "number, path, key, value, created_at, updated_at, ttl, crc"

# -- items -------------------------------------------------------------------------------------

_OWN_FIRST: Final = "ORDER BY owner IS NOT NULL, number LIMIT 1"
SELECT_ITEM = (
    f"SELECT {_ITEM} FROM store_item WHERE path = :path AND key = :key AND {_VISIBLE} {_OWN_FIRST}"
)
SELECT_NUMBERED = f"SELECT {_ITEM} FROM store_item WHERE number = :number"
SELECT_SOME = (
    f"SELECT {_ITEM} FROM store_item WHERE {_WITHIN} ORDER BY path, number LIMIT :limit OFFSET"
    " :offset"
)
SELECT_PAGE = (
    f"SELECT {_ITEM} FROM store_item WHERE (path, number) > (:low, :after) AND path < :high"
    f" AND {_VISIBLE}{{narrowing}} ORDER BY path, number LIMIT :limit"
)
# In the order of the table: of all items, few of which are wanted, that is read in half of the
# time.
SELECT_PAGE_OF_ALL = (
    f"SELECT {_ITEM} FROM store_item WHERE ({UNINDEXED}path, number) > (:low, :after)"
    f" AND {_VISIBLE}{{narrowing}} ORDER BY {UNINDEXED}path, number LIMIT :limit"
)
SELECT_NUMBERS = f"SELECT number FROM store_item WHERE {_WITHIN} ORDER BY path, number"
SELECT_PATHS = f"SELECT DISTINCT path FROM store_item WHERE {_WITHIN} ORDER BY path"
# The namespaces, cut to `:depth` labels, each by one look into the index: from a namespace's first
# item to that of the next. A row is a namespace, how much of it has been looked at, and how many
# more labels are wanted.
_FOLLOWING: Final = (
    f"SELECT path FROM store_item WHERE path >= {{}} AND path < :high AND {_VISIBLE} ORDER BY path"
    " LIMIT 1"
)
_GOES_ON: Final = "CASE WHEN seen < length(found) AND more > 0 THEN"
_BEHIND: Final = (
    "CAST(CASE WHEN more = 0 THEN substr(found, 1, seen - 1) || :beyond ELSE found || :least END AS"
    f" {BLOB})"
)
WALK_PATHS = (
    f"WITH RECURSIVE walk (found, seen, more) AS (SELECT ({_FOLLOWING.format(':low')}), 0, :depth"
    f" UNION ALL SELECT {_GOES_ON} found ELSE ({_FOLLOWING.format(_BEHIND)}) END,"
    f" {_GOES_ON} seen + {INSTR}(substr(found, seen + 1), :end) ELSE 0 END,"
    f" {_GOES_ON} more - 1 ELSE :depth END FROM walk WHERE found IS NOT NULL)"
    " SELECT substr(found, 1, seen) FROM walk WHERE found IS NOT NULL AND (more = 0 OR seen ="
    " length(found)) LIMIT :limit OFFSET :offset"
)
# Who sees all changes the item that it sees, whoever's that is.
_ITS_OWNER: Final = (
    f"coalesce({OWNER_VALUE}, (SELECT owner FROM store_item WHERE path = :seen AND key = :key"
    f" {_OWN_FIRST}))"
)
_INSERT: Final = (
    "INSERT INTO store_item AS old (path, key, owner, value, plain, fields, signature, ttl,"
    f" expires_at, created_at, updated_at, crc, words) VALUES (:path, :key, {_ITS_OWNER}, :value,"
    " :plain, :fields, :signature, :ttl, :expires_at, :created_at, :updated_at, :crc, :words) ON"
    " CONFLICT (path, key, coalesce(owner, '')) DO"
)
INSERT_ITEM = f"{_INSERT} NOTHING"
# An expired item is replaced as if it were new.
UPSERT_ITEM = (
    f"{_INSERT} UPDATE SET value = excluded.value, plain = excluded.plain, words ="
    " excluded.words, fields = excluded.fields, signature = excluded.signature, ttl ="
    " excluded.ttl, expires_at = excluded.expires_at, crc = excluded.crc, updated_at ="
    " excluded.updated_at, created_at = CASE WHEN old.expires_at <= :now THEN excluded.created_at"
    " ELSE old.created_at END RETURNING number, EXISTS (SELECT 1 FROM store_thread WHERE item ="
    " number)"
)
DELETE_ITEM = (
    f"DELETE FROM store_item WHERE path = :path AND key = :key AND {OWNED} RETURNING number"
)
REFRESH_ITEM = (
    "UPDATE store_item SET expires_at = :now + ttl WHERE number = :number AND expires_at > :now"
)

# -- threads that items come from ---------------------------------------------------------------

# Nobody deletes the thread until the operation has ended.
LOCK_BEGUN = f"SELECT created_at FROM thread WHERE {OF_ID} {FOR_UPDATE}"
INSERT_SOURCE = "INSERT INTO store_thread (thread_id, item) VALUES (:thread_id, :item)"
SELECT_SOURCES = (
    "SELECT item, thread_id FROM store_thread WHERE item >= :first AND item <= :last ORDER BY item,"
    " thread_id"
)

# -- words and vectors -------------------------------------------------------------------------

# As `SELECT_PAGE_OF_ALL`: all items are read in the order of the table.
_ALL: Final = f"{UNINDEXED}path >= :low AND {UNINDEXED}path < :high AND {_VISIBLE}"
_COUNT: Final = "SELECT count(*) FROM store_item WHERE "
_WORDS: Final = "SELECT number, words FROM store_item WHERE "
COUNT_WITHIN, COUNT_ALL = _COUNT + _WITHIN, _COUNT + _ALL
SELECT_WORDS = f"{_WORDS}{_WITHIN} AND ({{either}}) ORDER BY path, number"
SELECT_WORDS_OF_ALL = f"{_WORDS}{_ALL} AND ({{either}}) ORDER BY {UNINDEXED}path, number"
SELECT_FIRST = (
    f"SELECT number FROM store_item WHERE {_WITHIN} AND words IS {{words}}"
    " ORDER BY path, number LIMIT :limit"
)
SELECT_INDEXED = f"SELECT number FROM store_item WHERE {_WITHIN} AND words IS NOT NULL"
INSERT_VECTOR = (
    "INSERT INTO store_vector (item, signature, vector) VALUES (:item, :signature, :vector)"
)
_VECTORS: Final = (
    "FROM store_item JOIN store_vector ON store_vector.item = store_item.number"
    f" WHERE {_WITHIN} AND {UNINDEXED}store_vector.signature = :signature"
)
SELECT_VECTORS = f"SELECT item, vector {_VECTORS}"
SELECT_COSINES = f"SELECT item, {COSINE} {_VECTORS}"
COUNT_VECTORS = "SELECT count(*), max(number) FROM store_vector WHERE signature = :signature"
SELECT_VECTOR_NUMBERS = "SELECT number FROM store_vector WHERE signature = :signature"
SELECT_VECTORS_BEHIND = (
    "SELECT number, item, vector FROM store_vector WHERE signature = :signature AND number > :after"
    " ORDER BY number LIMIT :limit"
)


def has_word(at: int) -> str:
    """SQL for whether an item has the word `:word…`, which is between spaces."""
    return f"{INSTR}(words, :word{at}) > 0"


# -- indexing anew -----------------------------------------------------------------------------

SELECT_OUTDATED = (
    f"SELECT {_ITEM}, fields FROM store_item WHERE number > :after AND {OWNED}"
    " AND coalesce(fields, '') <> 'false' AND coalesce(signature, -1) <> :signature"
    " ORDER BY number LIMIT :limit"
)
SET_SIGNATURE = (
    "UPDATE store_item SET signature = :signature, words = :words"
    " WHERE number = :number AND crc = :crc AND updated_at = :updated_at RETURNING number"
)

# -- exporting ---------------------------------------------------------------------------------

SELECT_EXPORTED = (
    "SELECT number, path, key, value, crc, owner, fields, created_at, updated_at, ttl, expires_at"
    f" FROM store_item WHERE number > :after AND {OWNED} ORDER BY number LIMIT :limit"
)

# -- examining, counting, forgetting -----------------------------------------------------------

SELECT_EXAMINED = (
    "SELECT number, path, key, value, plain, crc FROM store_item WHERE number > :after ORDER BY"
    " number LIMIT :limit"
)
_ORPHANED: Final = (
    "NOT EXISTS (SELECT 1 FROM store_item WHERE store_item.number = store_vector.item)"
)
_FALLEN: Final = "NOT EXISTS (SELECT 1 FROM store_item WHERE store_item.number = store_thread.item)"
COUNT_ORPHANS = (
    f"SELECT (SELECT count(*) FROM store_vector WHERE {_ORPHANED}),"
    f" (SELECT count(*) FROM store_thread WHERE {_FALLEN})"
)
DELETE_ORPHANS = (
    f"DELETE FROM store_vector WHERE {_ORPHANED}",
    f"DELETE FROM store_thread WHERE {_FALLEN}",
)
SET_PLAIN = "UPDATE store_item SET plain = :plain WHERE number = :number"
COUNT_ROWS = "SELECT (SELECT count(*) FROM store_item), (SELECT count(*) FROM store_vector)"
DELETE_OWNED = (
    "DELETE FROM store_item WHERE number IN (SELECT number FROM store_item WHERE owner = :owner"
    " LIMIT :limit) RETURNING number"
)
