"""The SQL of the search index, which is in a database only once somebody has searched it."""

from __future__ import annotations

from typing import Final

from langmem_ext.storage.checkpoints.sql import ITEM_COLUMNS
from langmem_ext.storage.schema.dialect import AT, FOR_UPDATE, KEY, OF_ID, WITHIN
from langmem_ext.storage.schema.search_dialect import (
    BOUND,
    COPY_WORDS,
    END_OF_MATCHES,
    FOUND,
    IF_FREE,
    LATEST_FIRST,
    MAKE_LEAVING,
    MAKE_NEWEST,
    MAKE_WORDS,
    MATCHES,
    MATCHING,
    UNMAKE_LEAVING,
    WORDS_AT,
    WORDS_BEHIND,
    WORDS_IN_PLACE,
    WORDS_NUMBER,
    WORDS_OF_THREAD,
    WORDS_ONWARD,
    WORDS_THREAD,
    WORDS_WITHIN,
)

SHADOWS: Final = (
    "search_message",
    "search_data",
    "search_idx",
    "search_content",
    "search_config",
    "search",
    "search_pkey",
    "search_by_word",
    "search_by_time",
    "search_by_length",
    "search_message_pkey",
)
"""The tables and indexes that hold it: FTS5's on SQLite, and PostgreSQL's."""

LONGEST_ID: Final = 1000
"""Bytes of a message id that the index keeps: PostgreSQL's keys hold little more, and nobody has
longer ones."""

CREATE: Final = (MAKE_WORDS, MAKE_NEWEST, MAKE_LEAVING)
DROP: Final = (
    UNMAKE_LEAVING,
    "DROP TABLE IF EXISTS search",
    "DROP TABLE IF EXISTS search_message",
    "UPDATE thread SET version = version + 1, indexed = NULL WHERE indexed IS NOT NULL",
    "DELETE FROM setting WHERE name IN ('search', 'search_backfill', 'search_stale')",
)
SELECT_STATE = (
    "SELECT name, value FROM setting WHERE name IN ('search', 'search_backfill', 'search_stale')"
)
LOCK_STATE = f"{SELECT_STATE} ORDER BY name {FOR_UPDATE}"
SET_STATE = (
    "INSERT INTO setting (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET"
    " value = excluded.value"
)
CLEAR_STATE = "DELETE FROM setting WHERE name = :name AND value = coalesce(:value, value)"

# -- a message's words -----------------------------------------------------------------------------

SELECT_NEWEST = "SELECT number, marked FROM search_message WHERE thread = :thread AND id = :id"
FORGET_NEWEST = (
    "DELETE FROM search_message WHERE thread = :thread AND id = :id AND (number = :number OR marked"
    " = :number)"
)
INSERT_NEWEST = (
    "INSERT INTO search_message (thread, id, number, marked) VALUES (:thread, :id, :number,"
    " :marked) ON CONFLICT DO NOTHING RETURNING 1"
)
SELECT_NOTES = (
    "SELECT id, number, marked FROM search_message WHERE thread = :thread ORDER BY number DESC"
    " LIMIT :limit"
)
NOTE_NEWEST = (
    "INSERT INTO search_message (thread, id, number, marked) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO"
    " NOTHING"
)
SET_NEWEST = (
    "UPDATE search_message SET number = :number, marked = :marked WHERE thread = :thread AND id"
    " = :id"
)
DELETE_WORDS = f"DELETE FROM search WHERE {WORDS_AT}"

# -- many messages ---------------------------------------------------------------------------------

_UNINDEXED: Final = (
    "SELECT number, next_item FROM thread WHERE number > :after AND indexed IS NULL ORDER BY number"
    " LIMIT 1"
)
SELECT_UNINDEXED = f"{_UNINDEXED} {FOR_UPDATE}"
SELECT_FREE = f"{_UNINDEXED} {IF_FREE}"
SET_INDEXED = "UPDATE thread SET version = version + 1, indexed = :indexed WHERE number = :thread"
MOVE_VERSION = "UPDATE thread SET version = version + 1 WHERE number = :thread"
SELECT_INDEXED = "SELECT indexed FROM thread WHERE number = :thread"
SELECT_ITEMS_DOWN = (
    f"SELECT {ITEM_COLUMNS} FROM item WHERE {WITHIN} ORDER BY {KEY} DESC LIMIT :limit"
)
HAS_MESSAGES = (
    f"SELECT 1 FROM item WHERE {WITHIN} AND (role IS NOT NULL OR rest IS NOT NULL) LIMIT 1"
)
SELECT_LAST_MESSAGE = (
    f"SELECT max({KEY}) FROM item WHERE {WITHIN} AND (role IS NOT NULL OR rest IS NOT NULL)"
)
# Their newest item has gone, and one of these is now the newest of its id.
SELECT_ITEMS_LEFT = (
    f"SELECT {ITEM_COLUMNS} FROM item WHERE {WITHIN} AND length(message_id) <= {LONGEST_ID} AND NOT"
    " EXISTS (SELECT 1 FROM search_message WHERE thread = :thread AND id = item.message_id) ORDER"
    f" BY {KEY} DESC"
)
COPY: Final = (
    COPY_WORDS,
    (
        "INSERT INTO search_message (thread, id, number, marked) SELECT :target, id, number, marked"
        " FROM search_message WHERE thread = :source"
    ),
)
DELETE_THREAD: Final = (
    f"DELETE FROM search WHERE {WORDS_OF_THREAD}",
    "DELETE FROM search_message WHERE thread = :thread",
)

# -- examining -------------------------------------------------------------------------------------

# From one thread to the next, skipping all words of each.
NEXT_THREADS = (
    f"WITH RECURSIVE found (thread) AS (SELECT (SELECT {WORDS_THREAD} FROM search WHERE"
    f" {WORDS_ONWARD} LIMIT 1) UNION ALL SELECT (SELECT {WORDS_THREAD} FROM search WHERE"
    f" {WORDS_BEHIND} LIMIT 1) FROM found WHERE found.thread IS NOT NULL) SELECT found.thread,"
    " (SELECT number FROM thread WHERE number = found.thread) FROM found WHERE found.thread IS NOT"
    " NULL LIMIT :limit"
)
SELECT_PROGRESS = "SELECT next_item, indexed FROM thread WHERE number = :thread"
SELECT_WORDS = f"SELECT {WORDS_NUMBER}, {WORDS_IN_PLACE} FROM search WHERE {WORDS_WITHIN}"
HAS_MESSAGE = f"SELECT 1 FROM item WHERE {AT} AND message_id = :id"

# -- forgetting ------------------------------------------------------------------------------------

MERGE = "INSERT INTO search (search, rank) VALUES ('merge', :pages)"
TOTAL_CHANGES = "SELECT total_changes()"

# -- finding ---------------------------------------------------------------------------------------

SELECT_THREAD = (
    f"SELECT number, items FROM thread WHERE {OF_ID} AND (owner = :owner OR CAST(:owner AS TEXT) IS"
    " NULL)"
)
SELECT_BOUND = f"SELECT {BOUND}"
SELECT_THREADS_OF = "SELECT items FROM thread WHERE owner = :owner LIMIT :limit"
SELECT_TITLE = "SELECT id, title, epoch FROM thread WHERE number = :thread"
SELECT_LATEST_WITH = (
    f"SELECT {FOUND} FROM {{latest}} WHERE TRUE{{conditions}} ORDER BY {LATEST_FIRST} LIMIT :limit"
)
COUNT_LATEST = "SELECT count(*){counts} FROM {latest}"
SELECT_MATCHES = f"{MATCHES} WHERE {MATCHING}{{conditions}}{END_OF_MATCHES}"
