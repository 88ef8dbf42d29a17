"""Operations that delete threads, checkpoints or runs, and then what nothing refers to.

Invariants:
- What stays reads as before, to the byte: rows that a checkpoint or a pending write refers to stay,
  and so do the ancestors from which a channel is rebuilt.
- Right after an operation that deleted checkpoints, nothing is left of the thread that no
  checkpoint and no pending write refers to.
- Numbers are never reused: the thread's `next_*` counters stay. Its generation moves, so every
  process's cache of it is void.
- A dry run and a real run are one computation: the dry run only does not delete.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from langmem_ext.messages.manifest import Ranges, length_of, merged
from langmem_ext.storage.cache import ThreadCaches
from langmem_ext.storage.checkpoints.lookup import learn_all_namespaces, read_body
from langmem_ext.storage.checkpoints.sql import DELETE_THREAD, SELECT_ITEM
from langmem_ext.storage.checkpoints.thread_row import ThreadRow, find_number, find_thread
from langmem_ext.storage.checkpoints.tombstones import leave_tombstone
from langmem_ext.storage.operation import (
    PAUSE,
    PAUSE_EVERY,
    Batch,
    Op,
    Operation,
    Row,
    Trace,
    fetch,
    operation,
    operation_leaving,
)
from langmem_ext.storage.prune import sql
from langmem_ext.storage.prune.mark import FrameworkFacts, Place, Reach, WriteRow, gaps, newest_of
from langmem_ext.storage.rows import checksum as checks
from langmem_ext.storage.rows.checkpoint import Header
from langmem_ext.storage.search.catch_up import restore_earlier
from langmem_ext.storage.search.index import leave_open
from langmem_ext.storage.threads.list import read_info
from langmem_ext.types import Pruned, ThreadInfo, ThreadKey


@dataclass(frozen=True, slots=True)
class Policy:
    """Which checkpoints of a thread stay; all others are deleted.

    Attributes:
        last: How many of the newest of each namespace stay; at least one.
        before: Checkpoints that are not older than this stay; None if age does not matter.
    """

    last: int = 1
    before: datetime | None = None


@operation
def prune_thread(
    key: ThreadKey, policy: Policy, *, facts: FrameworkFacts, caches: ThreadCaches, dry_run: bool
) -> Op[Pruned]:
    """Delete the checkpoints that a policy does not keep, and what nothing refers to then.

    Args:
        key: The thread; nothing happens if there is none.
        policy: What stays.
        facts: What the checkpoints mean to their framework.
        caches: The caches of this process.
        dry_run: Show what would be deleted; change nothing.
    """
    thread = yield from find_thread(key, caches, lock=not dry_run)
    if thread is None:
        return Pruned()
    reach = Reach(thread.number, facts)
    yield from reach.read()
    yield from reach.keep((yield from _staying(reach, policy)))
    if len(reach.kept) == len(reach.rows):
        return Pruned()
    # Writes may be stored before their checkpoint; but if they are older than all that stays, their
    # checkpoint will never come.
    oldest = {place[0]: place[1] for place in sorted(reach.kept, reverse=True)}
    late = [
        write
        for write in reach.writes
        if write.place not in reach.rows and write.place[1] < oldest.get(write.place[0], b"")
    ]
    return (yield from _forget(thread, reach, late, caches=caches, dry_run=dry_run))


def _staying(reach: Reach, policy: Policy) -> Op[list[Place]]:
    staying = set(newest_of(reach.rows, policy.last))
    if policy.before is not None:
        for count, place in enumerate(reach.rows, start=1):
            if place not in staying and not _is_older(
                (yield from reach.header(place)), policy.before
            ):
                staying.add(place)
            if count % PAUSE_EVERY == 0:
                yield PAUSE
    return [place for place in reach.rows if place in staying]


def _is_older(header: Header, before: datetime) -> bool:
    """Whether a checkpoint was made before a moment; False if its time is invalid."""
    try:
        made = datetime.fromisoformat(header.ts)
    except (ValueError, TypeError):
        return False
    return (made if made.tzinfo is not None else made.replace(tzinfo=UTC)) < before


@operation
def delete_runs(
    runs: Sequence[str], owner: str | None, *, facts: FrameworkFacts, caches: ThreadCaches
) -> Op[Pruned]:
    """Delete the checkpoints and pending writes of runs, and what then nothing refers to.

    This is done in every thread that the owner may see.

    One that a channel of a later checkpoint is rebuilt from stays.
    """
    threads: set[str] = set()
    for run in runs:
        for thread_id, owned_by in (yield from fetch(sql.SELECT_THREADS_OF_RUN, run=run)):
            if owner is None or owned_by == owner:
                threads.add(thread_id)
    pruned = Pruned()
    for thread_id in sorted(threads):  # all operations that do this lock in this order
        pruned += yield from _delete_runs_of(ThreadKey(thread_id, owner), runs, facts, caches)
    return pruned


def _delete_runs_of(
    key: ThreadKey, runs: Sequence[str], facts: FrameworkFacts, caches: ThreadCaches
) -> Op[Pruned]:
    thread = yield from find_thread(key, caches, lock=True)
    assert thread is not None
    labels: set[int] = set()
    for run in runs:
        labels.update(
            number
            for (number,) in (
                yield from fetch(sql.SELECT_WORDS_OF_RUN, run=run, thread=thread.number)
            )
        )
    reach = Reach(thread.number, facts)
    yield from reach.read()
    yield from reach.keep(place for place, row in reach.rows.items() if row.words[0] not in labels)
    if len(reach.kept) == len(reach.rows):
        return Pruned()
    return (yield from _forget(thread, reach, (), caches=caches, dry_run=False))


@operation
def forget_before(
    key: ThreadKey, clearing: Operation[None], *, facts: FrameworkFacts, caches: ThreadCaches
) -> Op[list[str]]:
    """Empty a thread's list of messages, and forget all that led to this.

    Args:
        key: The thread; nothing is forgotten if there is none.
        clearing: Empties the list, by an edit.
        facts: What the checkpoints mean to their framework.
        caches: The caches of this process.

    Returns:
        The ids of threads that have messages still: this one if a branch, another channel or a
        subgraph that keeps its state refers to them, and copies of it.
    """
    yield from clearing
    thread = yield from find_thread(key, caches, lock=True)
    if thread is None:
        return []
    reach = Reach(thread.number, facts)
    yield from reach.read()
    yield from reach.keep((yield from _beside_the_head(reach)))
    yield from _forget(thread, reach, (), caches=caches, dry_run=False)
    copies = yield from fetch(sql.SELECT_COPIES, id=key.id, owner=key.owner)
    return [key.id] * bool(reach.runs) + [copy for (copy,) in copies]


def _beside_the_head(reach: Reach) -> Op[list[Place]]:
    """All checkpoints but those that the root's newest one follows, and their subgraphs'."""
    head = next((place for place in reversed(reach.rows) if place[0] == 0), None)
    passed, at = set[Place](), head
    while at is not None:
        passed.add(at)
        at = reach.parent_of(at)
    branches = [place for place in reach.rows if place[0] == 0 and place not in passed]
    spaces = [place for place in reach.rows if place[0] != 0]
    if not branches:
        yield from learn_all_namespaces(reach.cache)
        # One that is named by a task ended with it; one that is not keeps its state for the next.
        lasting = {number for name, number in reach.cache.namespaces.items() if ":" not in name}
        spaces = [place for place in newest_of(spaces, 1) if place[0] in lasting]
    return [*([head] if head is not None else []), *branches, *spaces]


def cut_thread(
    key: ThreadKey, checkpoint: bytes, *, facts: FrameworkFacts, caches: ThreadCaches
) -> Op[Pruned]:
    """Delete what came after a root checkpoint, and the writes of its tasks, which run again.

    Args:
        key: The thread; nothing happens if there is none.
        checkpoint: Id of the checkpoint that becomes the root's newest.
        facts: What the checkpoints mean to their framework.
        caches: The caches of this process.
    """
    thread = yield from find_thread(key, caches, lock=True)
    if thread is None:
        return Pruned()
    reach = Reach(thread.number, facts)
    yield from reach.read()
    end = reach.rows[0, checkpoint].key
    yield from reach.keep(place for place, row in reach.rows.items() if row.key <= end)
    later = [
        write
        for write in reach.writes
        if reach.key_of(write.place) > end or write.place == (0, checkpoint)
    ]
    return (yield from _forget(thread, reach, later, caches=caches, dry_run=False, cut=True))


def _take_ids(thread: ThreadRow, reach: Reach) -> Op[None]:
    """Remove the ids of messages that got them after what is left of the thread.

    They will get one again. Messages that were texts become texts again.

    Otherwise the graph would give them other ids, as separate messages, and what a node then marks
    (as sensitive, say) would not apply to the messages that are stored.
    """
    messages, texts = yield from reach.without_id()
    for number in (*messages, *texts):
        for row in (yield from fetch(SELECT_ITEM, thread=reach.number, number=number)):
            is_message = row[2] is not None or row[7] is not None
            if row[9] != checks.item_check(reach.number, row) or not (
                row[1] is not None or number in texts and is_message
            ):
                continue
            if number in texts:
                yield from _take_message(reach.number, number, row)
            else:
                check = checks.item_check(reach.number, (row[0], None, *row[2:]))
                yield from fetch(sql.TAKE_ID, thread=reach.number, number=number, crc=check)
            if thread.indexed is not None:
                thread.indexed = yield from leave_open(reach.number, number, row[1], thread.indexed)


def _take_message(thread: int, number: int, row: Row) -> Op[None]:
    """Turn a message back into the text that it was made from; no call refers to it."""
    [(_, messages, tokens, _)] = yield from fetch(
        sql.MEASURE_ITEMS, thread=thread, low=number, high=number + 1
    )
    check = checks.item_check(thread, (row[0], None, None, None, row[4], None, row[6], None, None))
    yield from fetch(sql.TAKE_MESSAGE, thread=thread, number=number, crc=check)
    yield from fetch(sql.LESSEN_THREAD, thread=thread, items=messages, tokens=tokens)
    yield from fetch(sql.FORGET_TITLE, thread=thread, first=number, end=number + 1)


class _Gone(Trace):
    """The trace of a deletion: there is no thread. If others have deleted it, both report so."""

    __slots__ = ()

    def is_left(self, thread_id: str) -> Op[bool]:
        return (yield from find_number(ThreadKey(thread_id), lock=True)) is None


@operation_leaving(_Gone())
def drop_thread(key: ThreadKey, *, caches: ThreadCaches, dry_run: bool) -> Op[Pruned]:
    """Delete a thread with everything it has, damaged or not, and the store's items of it alone."""
    number = yield from find_number(key, lock=not dry_run)
    if number is None:
        return Pruned()
    everything = yield from measure_thread(number)
    if not dry_run:
        yield from leave_tombstone(key.id, number)
        for statement in DELETE_THREAD:
            yield from fetch(statement, thread=number)
        caches.forget_thread(key.id)
    items = yield from _drop_thread_items(key.id, dry_run=dry_run)
    return everything + Pruned(store_items=items)


def _drop_thread_items(thread_id: str, *, dry_run: bool) -> Op[int]:
    """Delete the store's items that belong to a thread alone; how many there are."""
    if not (yield from fetch(sql.HAS_ITEMS, id=thread_id)):
        return 0
    [(count,)] = yield from fetch(sql.COUNT_ITEMS_OF, id=thread_id)
    if not dry_run:
        for statement in sql.DELETE_ITEMS_OF:
            yield from fetch(statement, id=thread_id)
    return int(count)


@operation
def give_thread(key: ThreadKey, owner: str, *, caches: ThreadCaches) -> Op[ThreadInfo]:
    """Give a thread to an owner, without the store's items of it alone; its new row.

    Raises:
        ThreadNotFound: It does not exist, or belongs to another owner.
    """
    info = yield from read_info(key, lock=True)
    if info.owner != owner:
        yield from _drop_thread_items(key.id, dry_run=False)
        if info.owner is not None:  # what the former owner's runs still write may not begin it
            yield from leave_tombstone(key.id, info.number)
        yield from fetch(sql.SET_OWNER, thread=info.number, owner=owner)
        caches.forget_thread(key.id)
    return (yield from read_info(ThreadKey(key.id, owner)))


def measure_thread(number: int) -> Op[Pruned]:
    """Count everything that a thread has, as its deletion would."""
    [(checkpoints, checkpoint_bytes)] = yield from fetch(sql.MEASURE_CHECKPOINTS, thread=number)
    [(writes, write_bytes)] = yield from fetch(sql.MEASURE_WRITES, thread=number)
    [(items, _, _, item_bytes)] = yield from fetch(sql.MEASURE_ALL_ITEMS, thread=number)
    [(values, value_bytes)] = yield from fetch(sql.MEASURE_ALL_VALUES, thread=number)
    [(thread_bytes,)] = yield from fetch(sql.MEASURE_THREAD, thread=number)
    size = checkpoint_bytes + write_bytes + item_bytes + value_bytes + thread_bytes
    return Pruned(
        threads=1, checkpoints=checkpoints, writes=writes, items=items, values=values, bytes=size
    )


# -- deleting --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Waste:
    """Rows of a thread that nothing refers to."""

    items: Ranges
    values: Ranges
    words: Ranges
    namespaces: Sequence[int]
    messages: int
    tokens: int
    figures: Pruned


def _forget(
    thread: ThreadRow,
    reach: Reach,
    late: Iterable[WriteRow],
    *,
    caches: ThreadCaches,
    dry_run: bool,
    cut: bool = False,
) -> Op[Pruned]:
    """Delete what is not kept: checkpoints, pending writes and what then nothing refers to.

    Args:
        thread: The thread.
        reach: What of it is kept.
        late: Pending writes to delete although their checkpoints stay.
        caches: The caches of this process.
        dry_run: Only report what would be deleted.
        cut: Whether to remove ids that messages got after all that is kept, too.
    """
    gone = [place for place in reach.rows if place not in reach.kept]
    too_late = {(write.place, write.task) for write in late}
    going = [
        write
        for write in reach.writes
        if write.place in reach.rows.keys() - reach.kept or (write.place, write.task) in too_late
    ]
    leaving = {(write.place, write.task) for write in going}
    yield from reach.keep_writes(
        write for write in reach.writes if (write.place, write.task) not in leaving
    )
    waste = yield from _find_waste(thread, reach)
    pruned = waste.figures + Pruned(
        checkpoints=len(gone),
        writes=len(going),
        bytes=sum(reach.rows[place].size for place in gone) + sum(write.size for write in going),
    )
    if not dry_run:
        yield from _delete_checkpoints(reach, gone, going)
        yield from _delete_waste(reach.number, waste)
        if cut:
            yield from _take_ids(thread, reach)
        if thread.indexed is not None and waste.items:
            yield from restore_earlier(reach.number, thread.indexed, reach.facts.codec)
        newest = next(newest_of((place for place in reach.rows if place[0] == 0), 1), None)
        if newest is not None and newest not in reach.kept:
            yield from _set_head(reach)
        caches.forget_number(reach.number)
    return pruned


def _find_waste(thread: ThreadRow, reach: Reach) -> Op[_Waste]:
    number = reach.number
    figures = Pruned()
    messages = tokens = 0
    items = gaps(merged(reach.runs), thread.next_item)
    for start, end in items:
        [(count, of_messages, of_tokens, size)] = yield from fetch(
            sql.MEASURE_ITEMS, thread=number, low=start, high=end
        )
        figures += Pruned(items=count, bytes=size)
        messages, tokens = messages + of_messages, tokens + of_tokens
    values = gaps(merged((value, value + 1) for value in reach.values), thread.next_value)
    for start, end in values:
        [(count, size)] = yield from fetch(sql.MEASURE_VALUES, thread=number, low=start, high=end)
        figures += Pruned(values=count, bytes=size)
    for start, end in merged(reach.runs):
        used = yield from fetch(sql.SELECT_ITEM_WORDS, thread=number, low=start, high=end)
        reach.words.update(word for (word,) in used)
    words = [
        (word, size)
        for word, size in (yield from fetch(sql.SELECT_WORDS, thread=number))
        if word not in reach.words
    ]
    figures += Pruned(bytes=sum(size for _, size in words))
    named = [space for (space,) in (yield from fetch(sql.SELECT_NAMESPACES, thread=number))]
    return _Waste(
        items=items,
        values=values,
        words=merged((word, word + 1) for word, _ in words),
        namespaces=[space for space in named if space not in reach.namespaces],
        messages=messages,
        tokens=tokens,
        figures=figures,
    )


def _delete_checkpoints(reach: Reach, gone: Sequence[Place], going: Sequence[WriteRow]) -> Op[None]:
    thread = reach.number
    before: Place | None = None
    for place, row in reach.rows.items():
        if place in reach.kept and row.implied and before not in reach.kept:
            yield from fetch(
                sql.NAME_PARENT, thread=thread, namespace=place[0], key=row.key, parent=row.parent
            )
        before = place
    for first in range(0, len(gone), PAUSE_EVERY):
        keys = [(place[0], reach.rows[place].key) for place in gone[first : first + PAUSE_EVERY]]
        yield Batch(
            sql.DELETE_CHECKPOINT,
            [{"thread": thread, "namespace": space, "key": key} for space, key in keys],
        )
        yield PAUSE
    if going:
        writes = [
            {
                "thread": thread,
                "namespace": write.place[0],
                "checkpoint": write.place[1],
                "task": write.task,
            }
            for write in going
        ]
        yield Batch(sql.DELETE_WRITES, writes)


def _delete_waste(number: int, waste: _Waste) -> Op[None]:
    for statement, ranges in ((sql.DELETE_ITEMS, waste.items), (sql.DELETE_VALUES, waste.values)):
        for start, end in ranges:
            yield from fetch(statement, thread=number, low=start, high=end)
    for start, end in waste.items:
        yield from fetch(sql.FORGET_TITLE, thread=number, first=start, end=end)
    for start, end in waste.words:
        yield from fetch(sql.DELETE_WORDS, thread=number, low=start, high=end)
    if waste.namespaces:
        yield Batch(
            sql.DELETE_NAMESPACE,
            [{"thread": number, "number": space} for space in waste.namespaces],
        )
    yield from fetch(sql.LESSEN_THREAD, thread=number, items=waste.messages, tokens=waste.tokens)


def _set_head(reach: Reach) -> Op[None]:
    """Update what the thread's row says of the root's newest checkpoint, which is now another."""
    newest = next(
        (
            place
            for place in newest_of(reach.rows, len(reach.rows))
            if place[0] == 0 and place in reach.kept
        ),
        None,
    )
    head: dict[str, int | str | None] = {"head_messages": None, "waiting_for": None}
    if newest is not None:
        header = yield from reach.header(newest)
        lengths = [
            length_of(ref.runs)
            for ref in header.values.values()
            if ref.body is None and ref.row is None
        ]
        head = {
            "head_messages": max(lengths, default=None),
            "waiting_for": (yield from _waiting_for(reach, header)),
        }
    yield from fetch(sql.SET_HEAD, thread=reach.number, **head)


def _waiting_for(reach: Reach, header: Header) -> Op[str | None]:
    ref = header.values.get(reach.facts.waiting_channel)
    if ref is None or ref.body is None and ref.row is None:
        return None
    body = ref.body if ref.row is None else (yield from read_body(reach.cache, ref.row))
    return None if body is None else reach.facts.name_in(body)
