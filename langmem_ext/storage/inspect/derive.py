"""Operations that recompute what a thread's row says of the other rows, and repair it.

Only what follows from other rows is ever written. A repair is one transaction per thread, and moves
its generation: then every process's cache of the thread is void.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from langmem_ext._internal.interruption import pass_on
from langmem_ext.errors import DamagedRow
from langmem_ext.messages.manifest import NUMBERS, merged, ranges_of
from langmem_ext.messages.token_costs.stored_tokens import implied_tokens
from langmem_ext.storage.cache import ThreadCache
from langmem_ext.storage.checkpoints.lookup import header_of, read_value
from langmem_ext.storage.checkpoints.sql import DELETE_THREAD, LOCK_NUMBER, SELECT_LATEST_CHECKPOINT
from langmem_ext.storage.inspect import sql
from langmem_ext.storage.inspect.read import NEXT_STEP, Contents, Examined, read_item
from langmem_ext.storage.operation import (
    PAUSE,
    PAUSE_EVERY,
    Op,
    fetch,
    fetch_one,
    operation,
    operation_once,
)
from langmem_ext.storage.rows import checksum as checks
from langmem_ext.storage.rows.checkpoint import Header, longest_list
from langmem_ext.storage.rows.clock import FIRST_MS, LAST_MS, MINUTE_MS
from langmem_ext.storage.rows.compression import expand_text, shrink_text
from langmem_ext.storage.rows.ids import readable
from langmem_ext.storage.schema.dialect import NUMBER
from langmem_ext.storage.threads.copy import copy_rows
from langmem_ext.storage.threads.list import STATUSES

NEW_GENERATION: Final = 1 << 31
"""If a thread's generation is not known, it goes on from here: no process has cached this one."""

_COUNTERS: Final = ("next_item", "next_value", "next_word", "next_namespace")
_DERIVED: Final = ("items", "tokens", "active_at", "head_messages", "waiting_for", *_COUNTERS)


@operation
def read_thread(number: int) -> Op[dict[str, Any] | None]:
    """A thread's row by column; None if it is gone."""
    row = yield from fetch_one(sql.SELECT_THREAD_ROW, thread=number)
    return None if row is None else dict(zip(sql.THREAD_COLUMNS, row, strict=True))


# -- columns of the thread's row -------------------------------------------------------------------


def derive(
    number: int, contents: Contents, waiting_channel: str
) -> Op[tuple[dict[str, Any], dict[str, Any]] | None]:
    """What a thread's row says, and what it should say; None if it is gone.

    Args:
        number: The thread.
        contents: Decodes rows.
        waiting_channel: The channel whose value, a name, the row shows.
    """
    stored = yield from read_thread(number)
    if stored is None:
        return None
    [(items, tokens, last_item)] = yield from fetch(sql.SELECT_ITEM_TOTALS, thread=number)
    [(last_value,)] = yield from fetch(sql.SELECT_LAST_VALUE, thread=number)
    [(last_word,)] = yield from fetch(sql.SELECT_LAST_WORD, thread=number)
    [(last_namespace,)] = yield from fetch(sql.SELECT_LAST_NAMESPACE, thread=number)
    last = {
        "next_item": -1 if last_item is None else last_item & NUMBER,
        "next_value": -1 if last_value is None else last_value & NUMBER,
        "next_word": -1 if last_word is None else last_word,
        "next_namespace": 0 if last_namespace is None else last_namespace,
    }
    right: dict[str, Any] = {"items": items, "tokens": tokens, "active_at": stored["active_at"]}
    if isinstance(stored["updated_at"], int):
        right["active_at"] = stored["updated_at"] // MINUTE_MS
    right |= yield from _derive_head(number, stored, contents, waiting_channel)
    right |= {
        name: max(stored[name] if _is_counter(stored[name]) else 0, last[name] + 1)
        for name in _COUNTERS
    }
    return stored, right


def _is_counter(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= NUMBERS


def _derive_head(
    number: int, stored: Mapping[str, Any], contents: Contents, waiting_channel: str
) -> Op[dict[str, Any]]:
    """What the thread's row should say of the root's newest checkpoint.

    If the checkpoint cannot be read, it is what the row says now.
    """
    row = yield from fetch_one(SELECT_LATEST_CHECKPOINT, thread=number, namespace=0)
    if row is None:
        return {"head_messages": None, "waiting_for": None}
    cache = ThreadCache(number)
    try:
        header: Header = yield from header_of(cache, 0, row)
        head_messages = longest_list(header.values)
        ref = header.values.get(waiting_channel)
        if ref is None:
            waiting_for = None
        else:
            body = yield from read_value(cache, ref)
            waiting_for = None if body is None else contents.read_name(body)
    except LookupError:
        return {"head_messages": head_messages, "waiting_for": stored["waiting_for"]}
    except Exception as error:
        pass_on(error)
        # Damaged, and named where checkpoints are read.
        return {name: stored[name] for name in ("head_messages", "waiting_for")}
    return {"head_messages": head_messages, "waiting_for": waiting_for}


def _senseless(stored: Mapping[str, Any]) -> Iterator[str]:
    """The columns of a thread's row that follow from no other row and hold an impossible value.

    The values themselves are not reported.
    """
    if not isinstance(stored["id"], str) or not stored["id"]:
        yield "id"
    if stored["status"] not in STATUSES:
        yield "status"
    for name, unit in (("created_at", 1), ("updated_at", 1), ("epoch", 1000)):
        if not isinstance(stored[name], int) or not FIRST_MS <= stored[name] * unit <= LAST_MS:
            yield name
    for name in ("owner", "title", "tags", "metadata", "tool", "forked_from"):
        if not isinstance(stored[name], str | None):
            yield name
    if isinstance(stored["metadata"], str) and not _is_object(stored["metadata"]):
        yield "metadata"


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


@operation_once
def compare_thread(thread: Examined, contents: Contents, waiting_channel: str) -> Op[int | None]:
    """Compare a thread's row with its other rows; its current generation, or None if it is gone."""
    both = yield from derive(thread.number, contents, waiting_channel)
    if both is None:
        return None
    stored, right = both
    place = f"thread {thread.number}"
    for name in _senseless(stored):
        thread.findings.add("thread", "damaged", place, f"{name} is invalid: {NEXT_STEP}")
    for name in _DERIVED:
        if stored[name] != right[name]:
            kind = (
                "counter"
                if name in _COUNTERS
                else "head"
                if name in ("head_messages", "waiting_for")
                else "total"
            )
            thread.findings.add(
                kind,
                "wrong",
                place,
                f"{name} is {stored[name]!r} and should be {right[name]!r}",
                fixable=True,
            )
    if not _is_counter(stored["generation"]):
        thread.findings.add(
            "counter", "wrong", place, f"generation is {stored['generation']!r}", fixable=True
        )
        return thread.generation
    return int(stored["generation"])


@operation
def repair_thread(
    number: int, items: Sequence[int], contents: Contents, waiting_channel: str
) -> Op[bool]:
    """Rewrite what follows from other rows; whether the thread still exists.

    Args:
        number: The thread.
        items: Numbers of the items whose columns are derived again from their bytes.
        contents: Decodes rows.
        waiting_channel: The channel whose value, a name, the thread's row shows.
    """
    yield from fetch(LOCK_NUMBER, thread=number)
    cache = ThreadCache(number)
    for count, item in enumerate(items, start=1):
        row = yield from fetch_one(sql.SELECT_ITEM, thread=number, number=item)
        if row is not None:
            reading = yield from read_item(cache, contents, row)
            columns = {
                "name": row[3],
                "text": row[4],
                "tool_call_id": row[5],
                "tokens": row[-1],
            } | dict(reading.columns)
            columns["text"] = _as_stored(columns["text"], row[4])
            if columns["tokens"] == implied_tokens(row[2], columns["text"]):
                columns["tokens"] = None
            check = checks.item_check(
                number,
                (*row[:3], columns["name"], columns["text"], columns["tool_call_id"], *row[6:-1]),
            )
            yield from fetch(sql.REPAIR_ITEM, **columns, thread=number, number=item, crc=check)
        if count % PAUSE_EVERY == 0:
            yield PAUSE
    both = yield from derive(number, contents, waiting_channel)
    if both is None:
        return False
    stored, right = both
    generation = stored["generation"] + 1 if _is_counter(stored["generation"]) else NEW_GENERATION
    yield from fetch(sql.REPAIR_THREAD, **right, generation=generation, thread=number)
    return True


def _as_stored(text: Any, stored: Any) -> Any:
    """A text as its column holds it: compressed if it was, and unchanged if it is the same text."""
    if not isinstance(stored, bytes) or text is None or text is stored:
        return text
    return stored if expand_text(stored) == text else shrink_text(text)


# -- references ------------------------------------------------------------------------------------


def conclude(thread: Examined) -> None:
    """Say which references lead nowhere, and which rows nothing leads to."""
    items, values = sorted(thread.items), sorted(thread.values)
    missing: dict[tuple[str, int], list[bytes]] = {}
    for need, checkpoints in thread.uses.items():
        lost = {
            ("item", gap)
            for start, end in ranges_of(need.runs)
            if (gap := _gap(items, start, end)) is not None
        }
        lost |= {("value", row) for row in need.rows if row not in thread.values}
        for place in lost - thread.broken:
            if place[0] not in thread.unread:
                missing.setdefault(place, []).extend(checkpoints)
    for (table, number), checkpoints in sorted(missing.items()):
        message = f"is missing, and {len(set(checkpoints))} checkpoints need it: {NEXT_STEP}"
        affected = map(readable, checkpoints)
        thread.findings.add(
            "reference",
            "damaged",
            f"{table} {thread.number}:{number}",
            message,
            checkpoints=affected,
        )
    # Rows younger than the examination may be needed by checkpoints that it has not seen.
    used_items = merged(pair for need in thread.uses for pair in ranges_of(need.runs))
    used_values = {row for need in thread.uses for row in need.rows}
    _note_unused(
        thread,
        "item",
        [number for number in items if number < thread.ends[0] and not _within(used_items, number)],
    )
    _note_unused(
        thread,
        "value",
        [number for number in values if number < thread.ends[1] and number not in used_values],
    )
    _note_missing_parents(thread)


def _note_unused(thread: Examined, table: str, unused: Sequence[int]) -> None:
    if unused:
        message = (
            f"{len(unused)} rows of {table}, starting with this one, are not needed by any"
            " checkpoint"
        )
        thread.findings.add("unused", "note", f"{table} {thread.number}:{unused[0]}", message)


def _note_missing_parents(thread: Examined) -> None:
    for (space, checkpoint), parent in thread.parents.items():
        if parent is not None and (space, parent) not in thread.parents:
            message = (
                f"follows {readable(parent)}, which is not stored: it was pruned, or never stored"
            )
            place = f"checkpoint {thread.number}/{space}/{readable(checkpoint)}"
            thread.findings.add(
                "parent", "note", place, message, checkpoints=(readable(checkpoint),)
            )
    for space, checkpoint in thread.written:
        if (space, checkpoint) not in thread.parents:
            place = f"pending_write {thread.number}/{space}/{readable(checkpoint)}"
            thread.findings.add(
                "unused", "note", place, "pending writes of a checkpoint that is not stored"
            )


def _gap(present: Sequence[int], start: int, end: int) -> int | None:
    """The first number from `start` to `end` that is missing; None if none is."""
    at = bisect_left(present, start)
    if bisect_left(present, end) - at == end - start:
        return None
    return next(
        number
        for number in range(start, end)
        if at + number - start >= len(present) or present[at + number - start] != number
    )


def _within(ranges: Sequence[tuple[int, int]], number: int) -> bool:
    at = bisect_left(ranges, (number + 1, 0)) - 1
    return at >= 0 and ranges[at][0] <= number < ranges[at][1]


# -- rows of no thread -----------------------------------------------------------------------------

OWNERS_AT_ONCE: Final = 256


@operation
def last_number() -> Op[int]:
    """The highest number that a thread can have."""
    [(number,)] = yield from fetch(sql.SELECT_LAST_NUMBER)
    return int(number)


@operation
def find_orphans(table: str, first: int, last: int) -> Op[tuple[list[int], int | None]]:
    """Numbers of threads, in a range, with rows in a table but none of their own.

    Second, the number to go on from, or None at the end.
    """
    orphans: list[int] = []
    for _ in range(OWNERS_AT_ONCE):
        if first > last:
            break
        row = yield from fetch_one(sql.NEXT_OWNERS[table], first=first)
        if row is None:
            return orphans, None
        number = row[0]
        if not isinstance(number, int):
            raise DamagedRow(f"a row of {table} belongs to {number!r}")
        if not (yield from fetch(sql.SELECT_THREAD_ROW, thread=number)):
            orphans.append(number)
        first = number + 1
    return orphans, first if first <= last else None


@operation
def adopt(number: int, now: int) -> Op[None]:
    """Create a thread for rows of no thread, with an id that says so."""
    for name in (f"recovered-{number}", f"recovered-{number}-{now}"):
        times = {"now": now, "minute": now // MINUTE_MS, "second": now // 1000}
        made = yield from fetch_one(sql.ADOPT_THREAD, thread=number, id=name, **times)
        if made is not None:
            if made[0] != number:
                # The number follows from the id.
                yield from copy_rows(number, made[0])
                yield from delete_orphans(number)
            return


@operation
def delete_orphans(number: int) -> Op[None]:
    """Delete rows of no thread."""
    for statement in DELETE_THREAD:
        yield from fetch(statement, thread=number)
