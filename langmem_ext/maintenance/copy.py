"""Copies threads from any checkpointer to any other through LangGraph's public interface.

A thread's checkpoints are put oldest first, each after its pending writes: so a copy that is
stopped leaves no checkpoint without its writes, and run again, it continues with the missing ones.
A target that stores many puts as one transaction is given them so. The copying itself is a
generator that asks for calls (`saver_calls`).
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, TypeAlias, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, CheckpointTuple, PendingWrite
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langmem_ext.checkpointer.validation import several
from langmem_ext.checkpointer.values import config_of
from langmem_ext.errors import InvalidInput, ThreadNotFound
from langmem_ext.maintenance.saver_calls import (
    Call,
    Puts,
    Reading,
    Saver,
    Scan,
    Steps,
    acarry_out,
    carry_out,
    is_async,
    must_be_awaited,
    outlines,
    takes_many,
    tells_times,
)
from langmem_ext.storage.rows.clock import Times, ms_of, now_ms

Place: TypeAlias = tuple[str, str, str]
"""Thread id as text, namespace and checkpoint id."""

Written: TypeAlias = dict[str, tuple[int, int]]
"""When threads were first and last written, in Unix milliseconds, by id as text."""

PARENTS: Final = 8
"""How many of the newest checkpoints are kept, to tell what the next one has changed."""

BATCH: Final = 64
"""Checkpoints that are put together, at most."""

BATCH_BYTES: Final = 16 * 1024 * 1024
"""What they hold, about, from which on no more are waited for."""

MESSAGE_BYTES: Final = 1024
"""What a message takes in memory beside its text, about."""

OBJECT_BYTES: Final = 64
"""What any object takes beside what it holds, about."""

PLAIN: Final = 0
"""Represents the index of a pending write that is not one of LangGraph's special ones, which are
negative."""

_plain = JsonPlusSerializer()


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """Progress of a copy: the current thread, checkpoints done, and checkpoints in total."""

    thread: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class CopyReport:
    """The result of a copy.

    Attributes:
        threads: Selected threads in the source.
        checkpoints: Checkpoints put.
        writes: New pending writes put.
        skipped: Checkpoints that existed already.
        seconds: Duration.
    """

    threads: int = 0
    checkpoints: int = 0
    writes: int = 0
    skipped: int = 0
    seconds: float = 0.0


Progress: TypeAlias = Callable[[CopyProgress], None]


def copy_saver(
    source: Saver,
    target: Saver,
    *,
    threads: Sequence[Any] | None = None,
    progress: Progress | None = None,
) -> CopyReport:
    """Copy threads from any checkpointer to any other; every state reads the same in the target.

    Copied are all namespaces with configs, parents, metadata, values, versions and pending writes
    in their order. LangGraph's interface has no way to read the path of a task, so it is not
    copied; where the order of writes depends on it, another path keeps that order. Repeated, it
    copies what is missing. The source is only read.

    In a `DeltaSaver` a thread that is new there has the times that it has in another, else those of
    its first and last checkpoint by their `ts`. The time of the copy is used if there is none. One
    that is there already was last written at the later of both times.

    Args:
        source: Where from.
        target: Where to; its `setup()` is called if it has one.
        threads: The ids of the threads to copy; all, if not given.
        progress: Called after each checkpoint, once it is stored. A target that stores many as one
            transaction (`DeltaSaver.put_all`) is given up to 64 at a time, of whatever threads, and
            fewer where they are large; then it is called for each of them.

    Raises:
        InvalidInput: Source and target are the same, or `threads` is one text, or a saver is for
            async code (`AsyncSqliteSaver`): use `acopy_saver`.
        ThreadNotFound: A thread that was asked for is not in the source.
    """
    for saver in (source, target):
        if must_be_awaited(saver):
            raise InvalidInput(f"{type(saver).__name__} is async only: use acopy_saver")
    return carry_out(_Copying(source, target, threads, progress).steps())


async def acopy_saver(
    source: Saver,
    target: Saver,
    *,
    threads: Sequence[Any] | None = None,
    progress: Progress | None = None,
) -> CopyReport:
    """Async twin of `copy_saver`.

    A saver without async methods (`SqliteSaver`) is called in a worker thread.
    """
    sync = {saver for saver in (source, target) if not await is_async(saver)}
    return await acarry_out(_Copying(source, target, threads, progress).steps(), sync=sync)


# -- copying ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Known:
    """A checkpoint as listed: its config, its pending writes' tasks and channels, and its time."""

    config: RunnableConfig
    writes: list[tuple[str, str]]
    made: int | None = None


def _in_order(listed: Iterable[Place]) -> list[Place]:
    """The order in which checkpoints are put, from how they were listed, oldest first.

    By their ids, across namespaces; but one that was listed as newer than another of its namespace
    comes after it, even if its id is lower: it was made by a machine whose clock was behind.
    """
    highest: dict[tuple[str, str], str] = {}
    order: dict[Place, str] = {}
    for place in listed:
        thread, namespace, checkpoint = place
        order[place] = highest[thread, namespace] = max(
            checkpoint, highest.get((thread, namespace), "")
        )
    return sorted(order, key=lambda place: (place[0], order[place]))


class _Copying:
    """One copy."""

    def __init__(
        self, source: Saver, target: Saver, threads: Sequence[Any] | None, progress: Progress | None
    ) -> None:
        if source is target:
            raise InvalidInput("source and target are the same saver: pass two different ones")
        self._source = source
        self._target = target
        self._threads = (
            None if threads is None else several(threads, "thread ids", "threads=[thread_id]")
        )
        self._progress = progress
        self._parents: OrderedDict[Place, CheckpointTuple | None] = OrderedDict()
        self._together = takes_many(target)
        self._puts: list[Call] = []
        self._times: list[Times] = []
        self._written: Written = {}
        self._now = now_ms()
        self._size = 0
        self._untold: list[CopyProgress] = []

    def steps(self) -> Steps[CopyReport]:
        """Copy, by asking for one call after another."""
        began = time.monotonic()
        yield Call(self._target, "setup")
        known = yield from self._listed(self._source, self._threads)
        threads = {
            place[0]: checkpoint.config["configurable"]["thread_id"]
            for place, checkpoint in known.items()
        }
        if nowhere := [thread for thread in self._threads or () if str(thread) not in threads]:
            raise ThreadNotFound(
                f"thread {nowhere[0]!r} not found in the source: nothing was copied"
            )
        # Into a store that is new, mostly: then it need not be asked for each thread.
        anything = yield from self._listed(self._target, None, limit=1)
        there = (yield from self._listed(self._target, list(threads.values()))) if anything else {}
        places = _in_order(known)
        missing = {
            place
            for place in places
            if place not in there or _lacking(known[place].writes, there[place].writes)
        }
        if self._together:
            self._written = yield from self._when_written(known, there, missing)
        reading = Reading(
            self._source, [known[place].config for place in places if place in missing]
        )
        checkpoints = writes = 0
        try:
            for done, place in enumerate(places, start=1):
                if place in missing:
                    copied = yield from self._copy(
                        reading, place, known[place].config, there.get(place)
                    )
                    checkpoints, writes = checkpoints + copied[0], writes + copied[1]
                self._untold.append(CopyProgress(place[0], done, len(known)))
                if not self._puts or len(self._untold) >= BATCH or self._size >= BATCH_BYTES:
                    yield from self._flush()
        except Exception:
            # where the source cannot be read on, what was read before is stored
            yield from self._flush()
            raise
        yield from self._flush()
        return CopyReport(
            len(threads),
            checkpoints,
            writes,
            len(known.keys() & there.keys()),
            time.monotonic() - began,
        )

    def _when_written(
        self, known: Mapping[Place, _Known], there: Mapping[Place, _Known], missing: set[Place]
    ) -> Steps[Written]:
        """The first and last write time that each thread with missing checkpoints is to have.

        So a copy that is stopped leaves no thread that looks older than it is, which a retention
        would forget.
        """
        ids = {place[0]: known[place].config["configurable"]["thread_id"] for place in missing}
        moments: dict[str, list[int]] = {}
        for place, checkpoint in known.items():
            if place[0] in ids and checkpoint.made is not None:
                moments.setdefault(place[0], []).append(checkpoint.made)
        written: Written = {thread: (min(made), max(made)) for thread, made in moments.items()}
        if ids and tells_times(self._source):
            written |= yield Call(self._source, "thread_times", (list(ids.values()),))
        if both := [ids[thread] for thread in ids.keys() & {place[0] for place in there}]:
            kept: Written = yield Call(self._target, "thread_times", (both,))
            for thread, (created, updated) in kept.items():
                written[thread] = created, max(updated, written.get(thread, (0, self._now))[1])
        return written

    def _times_of(self, thread: str, checkpoint: CheckpointTuple) -> Times:
        """When a checkpoint was made, and its thread first and last written; now if not known."""
        made = ms_of(checkpoint.checkpoint.get("ts"))
        return Times(
            self._now if made is None else made, *self._written.get(thread, (self._now, self._now))
        )

    def _copy(
        self, reading: Reading, place: Place, config: RunnableConfig, there: _Known | None
    ) -> Steps[tuple[int, int]]:
        """Copy the next missing checkpoint, or only its writes; returns the counts of both."""
        checkpoint: CheckpointTuple | None = yield reading
        if checkpoint is None:
            return 0, 0
        times, writes = self._times_of(place[0], checkpoint), checkpoint.pending_writes or []
        yield from self._copy_writes(config, writes, times)
        if there is None:
            yield from self._copy_checkpoint(place, checkpoint, times)
        self._size += _size_of(checkpoint) if self._together else 0
        return int(there is None), _lacking(
            [write[:2] for write in writes], () if there is None else there.writes
        )

    def _put(self, times: Times, method: str, *args: Any) -> Steps[None]:
        call = Call(self._target, method, args)
        if self._together:
            self._puts.append(call)
            self._times.append(times)
        else:
            yield call

    def _flush(self) -> Steps[None]:
        """Store the waiting calls, and report progress."""
        puts, times, untold = self._puts, self._times, self._untold
        self._puts, self._times, self._untold, self._size = [], [], [], 0
        if puts:
            yield Puts(self._target, puts, times)
        if self._progress is not None:
            for progress in untold:
                self._progress(progress)

    def _listed(
        self, saver: Saver, threads: Sequence[Any] | None, limit: int | None = None
    ) -> Steps[dict[Place, _Known]]:
        """A saver's checkpoints by place, of some threads or of all, oldest first per namespace."""
        known: dict[Place, _Known] = {}

        def note(
            config: RunnableConfig, writes: list[tuple[str, str]], made: int | None = None
        ) -> None:
            configurable = config["configurable"]
            thread, namespace, checkpoint = (
                configurable["thread_id"],
                configurable.get("checkpoint_ns", ""),
                configurable["checkpoint_id"],
            )
            known[str(thread), namespace, checkpoint] = _Known(
                config_of(thread, namespace, checkpoint), writes, made
            )

        def show(checkpoint: CheckpointTuple) -> None:
            note(
                checkpoint.config,
                [write[:2] for write in checkpoint.pending_writes or ()],
                ms_of(checkpoint.checkpoint.get("ts")),
            )

        if limit is None and outlines(saver):
            for config, writes in (yield Call(saver, "outline", (threads,))):
                note(config, writes)
            return known
        for asked in (
            [None]
            if threads is None
            else [{"configurable": {"thread_id": thread}} for thread in threads]
        ):
            yield Scan(saver, cast("RunnableConfig | None", asked), show, limit)
        return dict(reversed(known.items()))

    def _copy_checkpoint(
        self, place: Place, checkpoint: CheckpointTuple, times: Times
    ) -> Steps[None]:
        configurable = checkpoint.config["configurable"]
        parent = yield from self._parent(checkpoint)
        config: RunnableConfig = {
            "configurable": {"thread_id": configurable["thread_id"], "checkpoint_ns": place[1]}
        }
        if checkpoint.parent_config is not None:
            config["configurable"]["checkpoint_id"] = checkpoint.parent_config["configurable"][
                "checkpoint_id"
            ]
        yield from self._put(
            times,
            "put",
            config,
            checkpoint.checkpoint,
            checkpoint.metadata,
            _new_versions(checkpoint, parent),
        )
        self._remember(place, checkpoint)

    def _parent(self, child: CheckpointTuple) -> Steps[CheckpointTuple | None]:
        if child.parent_config is None:
            return None
        configurable = child.parent_config["configurable"]
        thread, namespace, checkpoint = (
            configurable["thread_id"],
            configurable.get("checkpoint_ns", ""),
            configurable["checkpoint_id"],
        )
        place = str(thread), namespace, checkpoint
        if place not in self._parents:
            self._remember(
                place,
                (
                    yield Call(
                        self._source, "get_tuple", (config_of(thread, namespace, checkpoint),)
                    )
                ),
            )
        self._parents.move_to_end(place)
        return self._parents[place]

    def _remember(self, place: Place, checkpoint: CheckpointTuple | None) -> None:
        self._parents[place] = checkpoint
        if len(self._parents) > PARENTS:
            self._parents.popitem(last=False)

    def _copy_writes(
        self, config: RunnableConfig, writes: Sequence[PendingWrite], times: Times
    ) -> Steps[None]:
        """Put pending writes so that they are read in the same order as from the source.

        They are read by path, then task, then index.
        """
        runs = [
            (place, [(channel, value) for _, channel, value in run])
            for place, run in groupby(writes, key=_place_of)
        ]
        places = [place for place, _ in runs]
        ordered = places == sorted(set(places))
        before: dict[str, list[tuple[str, Any]]] = {}
        for number, ((task, index), run) in enumerate(runs):
            if index == PLAIN:
                # With those of an earlier run in front, which are stored and not written again: a
                # write's index is its place in the list.
                run = before[task] = [*before.get(task, []), *run]
            yield from self._put(
                times, "put_writes", config, run, task, "" if ordered else f"{number:08}"
            )


def _place_of(write: PendingWrite | tuple[str, str]) -> tuple[str, int]:
    """A pending write's task and index.

    The index is LangGraph's where it is one of the special ones, which come before all others of
    the task; else `PLAIN`.
    """
    task, channel = write[:2]
    return task, WRITES_IDX_MAP.get(channel, PLAIN)


def _lacking(writes: Sequence[tuple[str, str]], there: Sequence[tuple[str, str]]) -> int:
    """How many of a checkpoint's pending writes are missing from the target.

    A thread that continued in the target has more, and lacks none.
    """
    return (Counter(map(_place_of, writes)) - Counter(map(_place_of, there))).total()


def _new_versions(checkpoint: CheckpointTuple, parent: CheckpointTuple | None) -> dict[str, Any]:
    """The channels that a checkpoint changed since its parent, in their version or in place."""
    versions: Mapping[str, Any] = checkpoint.checkpoint["channel_versions"]
    if parent is None:
        return dict(versions)
    values, earlier = checkpoint.checkpoint["channel_values"], parent.checkpoint["channel_values"]
    known = parent.checkpoint["channel_versions"]
    return {
        channel: version
        for channel, version in versions.items()
        if known.get(channel) != version
        or (
            channel in values
            and (channel not in earlier or not _is_same(values[channel], earlier[channel]))
        )
    }


def _is_same(value: Any, other: Any) -> bool:
    """Whether two values are the same, to the type."""
    if value is other:
        return True
    try:
        return _plain.dumps_typed(value) == _plain.dumps_typed(other)
    except Exception:  # a custom serializer takes what LangGraph's does not
        return bool(value == other)


def _size_of(value: Any) -> int:
    """Bytes that a value takes, about, with all that it holds."""
    size, seen, waiting = 0, set[int](), [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str | bytes | bytearray):
            size += len(part)
        elif id(part) not in seen and not isinstance(part, type):
            seen.add(id(part))
            size += OBJECT_BYTES
            if isinstance(part, Mapping):
                waiting += [*part.keys(), *part.values()]
            elif isinstance(part, list | tuple | set | frozenset):
                waiting += part
            elif isinstance(part, BaseMessage) and isinstance(part.content, str):
                size += MESSAGE_BYTES + len(part.content)
            else:
                waiting += getattr(part, "__dict__", {}).values()
    return size
