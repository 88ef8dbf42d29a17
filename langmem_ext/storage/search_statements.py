"""The SQL of the search index, which is in a database only once somebody has searched it."""

from __future__ import annotations

from typing import Final

from langmem_ext.storage.dialect import AT, HAS_SEARCH, KEY, KEY_BITS, WITHIN
from langmem_ext.storage.statements import ITEM_COLUMNS


def row_key(thread: int, number: int) -> int:
    """The key of an item, which is its rowid in the index."""
    return thread << KEY_BITS | number


SHADOWS: Final = ("search_message", "search_data", "search_idx", "search_content", "search_config")
"""The tables that hold it."""

CREATE: Final = (
    # A message's words (`messages.words`), by the item's key: a thread is one range of rowids. The words are the tokenizer's own, so every
    # program that opens the file takes them apart in the same way. Lengths are of no use: ranking is not FTS5's (`find_ops`).
    "CREATE VIRTUAL TABLE search USING fts5(words, columnsize = 0, tokenize = 'ascii')",
    # The newest item of each message id.
    """CREATE TABLE search_message (
        thread INTEGER NOT NULL, id BLOB NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (thread, id)
    ) WITHOUT ROWID""",
    # Whoever deletes an item takes its words along; FTS5 forgets them when it merges, which `compact` has it do.
    """CREATE TRIGGER item_leaves_search AFTER DELETE ON item BEGIN
        DELETE FROM search WHERE rowid = OLD.key;
        DELETE FROM search_message WHERE thread = OLD.key >> 32 AND id = OLD.message_id AND number = OLD.key & 4294967295;
        INSERT OR REPLACE INTO setting (name, value) VALUES ('search_stale', '');
    END""",
)
DROP: Final = (
    "DROP TRIGGER IF EXISTS item_leaves_search",
    "DROP TABLE IF EXISTS search",
    "DROP TABLE IF EXISTS search_message",
    "UPDATE thread SET indexed = NULL WHERE indexed IS NOT NULL",
    "DELETE FROM setting WHERE name IN ('search', 'search_backfill', 'search_stale')",
)
HAS_FTS5 = f"SELECT 1 FROM {HAS_SEARCH}"
SELECT_STATE = "SELECT name, value FROM setting WHERE name IN ('search', 'search_backfill', 'search_stale')"
SET_STATE = "INSERT INTO setting (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
CLEAR_STATE = "DELETE FROM setting WHERE name = :name AND value = coalesce(:value, value)"

# -- a message's words -------------------------------------------------------------------------------------------------------------------

SELECT_NEWEST = "SELECT number FROM search_message WHERE thread = :thread AND id = :id"
SET_NEWEST = (
    "INSERT INTO search_message (thread, id, number) VALUES (:thread, :id, :number)"
    " ON CONFLICT (thread, id) DO UPDATE SET number = excluded.number"
)
INSERT_WORDS = "INSERT OR REPLACE INTO search (rowid, words) VALUES (:key, :words)"
DELETE_WORDS = "DELETE FROM search WHERE rowid = :key"

# -- many messages -----------------------------------------------------------------------------------------------------------------------

SELECT_UNINDEXED = "SELECT number, next_item FROM thread WHERE number > :after AND indexed IS NULL ORDER BY number LIMIT 1"
SET_INDEXED = "UPDATE thread SET indexed = :indexed WHERE number = :thread"
SELECT_INDEXED = "SELECT indexed FROM thread WHERE number = :thread"
SELECT_ITEMS_DOWN = f"SELECT {ITEM_COLUMNS} FROM item WHERE {WITHIN} ORDER BY {KEY} DESC LIMIT :limit"
HAS_MESSAGES = f"SELECT 1 FROM item WHERE {WITHIN} AND (role IS NOT NULL OR rest IS NOT NULL) LIMIT 1"
SELECT_LAST_MESSAGE = f"SELECT max({KEY}) FROM item WHERE {WITHIN} AND (role IS NOT NULL OR rest IS NOT NULL)"
# Their newest item has gone, and one of these is now the newest of its id.
SELECT_ITEMS_LEFT = (
    f"SELECT {ITEM_COLUMNS} FROM item WHERE {WITHIN} AND message_id IS NOT NULL"
    f" AND NOT EXISTS (SELECT 1 FROM search_message WHERE thread = :thread AND id = item.message_id) ORDER BY {KEY} DESC"
)
COPY: Final = (
    "INSERT INTO search (rowid, words) SELECT rowid + :shift, words FROM search WHERE rowid >= :low AND rowid < :high",
    "INSERT INTO search_message (thread, id, number) SELECT :target, id, number FROM search_message WHERE thread = :source",
)
DELETE_THREAD: Final = (
    "DELETE FROM search WHERE rowid >= :low AND rowid < :high",
    "DELETE FROM search_message WHERE thread = :thread",
)

# -- examining ---------------------------------------------------------------------------------------------------------------------------

CHECK = "INSERT INTO search (search) VALUES ('integrity-check')"
NEXT_THREAD = (
    "SELECT rowid >> 32, (SELECT number FROM thread WHERE number = search.rowid >> 32) FROM search WHERE rowid >= :low"
    " ORDER BY rowid LIMIT 1"
)
SELECT_PROGRESS = "SELECT next_item, indexed FROM thread WHERE number = :thread"
SELECT_WORDS = "SELECT rowid, words FROM search WHERE rowid >= :low AND rowid < :high"
HAS_MESSAGE = f"SELECT 1 FROM item WHERE {AT} AND message_id = :id"

# -- forgetting --------------------------------------------------------------------------------------------------------------------------

MERGE = "INSERT INTO search (search, rank) VALUES ('merge', :pages)"
TOTAL_CHANGES = "SELECT total_changes()"

# -- finding -----------------------------------------------------------------------------------------------------------------------------

SELECT_THREAD = "SELECT number, items FROM thread WHERE id = :thread{owner}"
SELECT_THREADS_OF = "SELECT number, items FROM thread WHERE owner = :owner LIMIT :limit"
SELECT_TITLE = "SELECT id, title, epoch FROM thread WHERE number = :thread"
_NEWEST: Final = "(SELECT rowid, words FROM search WHERE rowid >= :low AND rowid < :high ORDER BY rowid DESC LIMIT :newest) AS search"
SELECT_NEWEST_WITH = f"SELECT search.rowid, search.words FROM {_NEWEST}{{joins}} WHERE TRUE{{conditions}} LIMIT :limit"
COUNT_NEWEST = f"SELECT count(*){{counts}} FROM {_NEWEST}"
SELECT_MATCHES = (
    "SELECT search.rowid, search.words FROM search{joins} WHERE search MATCH :match AND search.rowid >= :low AND search.rowid < :high"
    "{conditions} ORDER BY search.rowid DESC LIMIT :limit"
)
# In this order: the index finds few, and each of them is looked up.
JOIN_ITEM: Final = " CROSS JOIN item ON item.key = search.rowid"
JOIN_THREAD: Final = " CROSS JOIN thread ON thread.number = search.rowid >> 32"
