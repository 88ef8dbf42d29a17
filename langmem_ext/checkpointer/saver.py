"""`DeltaSaver`: a LangGraph checkpointer that stores every message once."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Unpack

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.serde.base import SerializerProtocol

from langmem_ext._internal.secret_names import is_secret_name
from langmem_ext._internal.stepping import aperform, perform
from langmem_ext._internal.url import Address
from langmem_ext.checkpointer import bulk, pruner
from langmem_ext.checkpointer.metadata import EXPECTED_HEAD, warn_left_out
from langmem_ext.checkpointer.opening import Done, Opening, SaverOptions
from langmem_ext.checkpointer.pages import CheckpointPages, NamedCheckpoints
from langmem_ext.checkpointer.validation import (
    checked_checkpoint,
    checked_task,
    checked_writes,
    configurable_of,
    is_plain,
    place_of,
    require_limit,
    several,
)
from langmem_ext.checkpointer.values import (
    config_of,
    is_heavy,
    is_small,
    load_checkpoint,
    load_history,
    pack_checkpoint,
    split_filter,
    texts_of,
)
from langmem_ext.errors import DamagedRow, HeadConflict, ThreadNotFound
from langmem_ext.log.closing import Closing
from langmem_ext.log.codec import MessageCodec, codec_of
from langmem_ext.log.message_log import MessageLog, bound_owner, owner_key, thread_key
from langmem_ext.log.restore import DataSerializer
from langmem_ext.log.retention import (
    Retention,
    Steps,
    arun_steps,
    require_retention,
    run_steps,
)
from langmem_ext.log.shown import ReprFacts
from langmem_ext.log.sweeper import EVERY, AsyncSweeper, Sweeper
from langmem_ext.storage.checkpoints import get as read_ops
from langmem_ext.storage.checkpoints import put as checkpoint_ops
from langmem_ext.storage.checkpoints import writes as write_ops
from langmem_ext.storage.checkpoints.late_writes import origin_of
from langmem_ext.storage.checkpoints.many import Wanted
from langmem_ext.storage.operation import Operation
from langmem_ext.storage.rows.checkpoint import MINOR_DIGITS, next_version
from langmem_ext.storage.rows.clock import Times, now_ms
from langmem_ext.storage.sqlite.driver import Synchronous
from langmem_ext.telemetry import Emitter, Sink
from langmem_ext.types import PackedValue, PackedWrite, Pruned, StoredCheckpoint, ThreadKey

if TYPE_CHECKING:
    from langmem_ext.store.store import DeltaStore


class DeltaSaver(Closing, BaseCheckpointSaver[Any]):
    """A drop-in checkpointer that stores each message, and each large value, once.

    One object serves `invoke` and `ainvoke`, from any thread and any event loop; many processes may
    use one file.

    Args:
        source: An open `sqlite3.Connection` (with `check_same_thread=False`), a URL or path, or a
            `MessageLog`.
        serde: A custom serializer instead of the default, which restores data classes and never a
            callable (`DataSerializer`). It serialises whole messages, so the database shows no
            text.
        owner: Bind the saver to an owner: it finds only this owner's threads, and its threads
            belong to this owner.
        retention: What to keep. The saver applies it in small steps as it stores checkpoints; a put
            never fails because of it.
        metadata_keys: The names in `configurable` whose values become metadata, visible to anyone
            who may list checkpoints. Default: all scalars, like LangGraph, except names that look
            secret (`langmem_ext._internal.secret_names`).
        telemetry: Sinks for the event `expired`: how many threads the retention deleted.

    With `configurable["expected_head"]` in a config (the id of the newest checkpoint that the
    caller knows; empty for a new thread), a write raises `HeadConflict` if another writer has moved
    the head. Without it both writers' checkpoints are stored, as branches, and the latest id is the
    head.

    Example:
        `graph = builder.compile(checkpointer=DeltaSaver.open("memory.db"))`
    """

    def __init__(
        self,
        source: MessageLog | sqlite3.Connection | Address = ":memory:",
        *,
        serde: SerializerProtocol | None = None,
        owner: str | None = None,
        retention: Retention | None = None,
        metadata_keys: Collection[str] | None = None,
        telemetry: Sequence[Sink] = (),
    ) -> None:
        super().__init__(serde=serde if serde is not None else DataSerializer())
        require_retention(retention, source)  # checked before a file is created
        self.owner, emitter = owner_key(owner), Emitter(telemetry)
        self.metadata_keys = (
            None if metadata_keys is None else frozenset(several(metadata_keys, "metadata_keys"))
        )
        self.log = source if isinstance(source, MessageLog) else MessageLog.open(source)
        self._opened = True  # a log that was passed in is the saver's, too
        self._codec = codec_of(self.serde)
        self._codec_serde = self.serde
        self.retention, self.telemetry = retention, emitter.sinks
        self._keeper = pruner.keeper_of(retention, self.log, self.owner, self.codec, emitter)

    # -- opening and closing -----------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        url: Address,
        *,
        serde: SerializerProtocol | None = None,
        synchronous: Synchronous = "full",
        owner: str | None = None,
        retention: Retention | None = None,
        metadata_keys: Collection[str] | None = None,
        telemetry: Sequence[Sink] = (),
        compress: bool = False,
    ) -> DeltaSaver:
        """Open a database by path or URL (see `MessageLog.open`)."""
        require_retention(retention, url)
        owner, telemetry = owner_key(owner), Emitter(telemetry).sinks
        metadata_keys = None if metadata_keys is None else several(metadata_keys, "metadata_keys")
        log = MessageLog.open(url, synchronous=synchronous, compress=compress)
        return cls(
            log,
            serde=serde,
            owner=owner,
            retention=retention,
            metadata_keys=metadata_keys,
            telemetry=telemetry,
        )

    @classmethod
    async def aopen(cls, url: Address, **options: Unpack[SaverOptions]) -> DeltaSaver:
        """Async twin of `open`, which does not block the event loop. Close it by `aclose`.

        Example:
            `saver = await DeltaSaver.aopen("memory.db")`
        """
        return await asyncio.to_thread(partial(cls.open, url, **options))

    @classmethod
    def from_conn_string(cls, url: Address, **options: Unpack[SaverOptions]) -> Opening[DeltaSaver]:
        """A context manager, for `with` or `async with`, with the options of `open`."""
        return Opening(partial(cls.open, url, **options))

    def for_owner(self, owner: str) -> DeltaSaver:
        """A saver on the same log, bound to an owner.

        Raises:
            InvalidInput: This one is bound to another owner.
        """
        kept: dict[str, Any] = {
            "retention": self.retention,
            "metadata_keys": self.metadata_keys,
            "telemetry": self.telemetry,
        }
        return type(self)(self.log, serde=self.serde, owner=bound_owner(self, owner), **kept)

    @cached_property
    def store(self) -> DeltaStore:
        """The long-term store in the same database, bound to the same owner.

        `DeltaStore(saver, index=…, ttl=…)` makes one with options.
        """
        from langmem_ext.store.store import DeltaStore  # noqa: PLC0415 (only if it is needed)

        return DeltaStore(self)

    def _repr_facts(self) -> ReprFacts:
        return ReprFacts(self.log.driver, self.owner)

    def setup(self) -> Awaitable[None]:
        """Does nothing: opening migrates. For code that calls it, with or without `await`."""
        return Done()

    def lease(self, thread_id: str, *, wait: float = 10) -> AbstractContextManager[None]:
        """Hold the lease of a thread, which excludes every other holder in any process.

        Args:
            thread_id: The thread.
            wait: Seconds to wait for another holder.

        Raises:
            ThreadBusy: Another caller still holds the lease after `wait` seconds.
        """
        return self.log.driver.lease(thread_key(thread_id), wait=wait)

    def alease(self, thread_id: str, *, wait: float = 10) -> AbstractAsyncContextManager[None]:
        """Async twin of `lease`."""
        return self.log.driver.alease(thread_key(thread_id), wait=wait)

    # -- writing -----------------------------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; it is stored when this returns.

        Raises:
            ThreadNotFound: The thread belongs to another owner.
            ThreadDeleted: The config names a checkpoint of a thread that has been deleted.
            HeadConflict: The config has an `expected_head`, and the newest checkpoint is not this
                one's parent; or, without a parent in the config, not the expected one.
            InvalidThreadId: The config has no thread_id.
        """
        op, stored = self._put(config, checkpoint, metadata, new_versions, of_run=True)
        self.log.write_of_run(op)
        if self._keeper is not None and (work := self._after_put(config)) is not None:
            work()
        return stored

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Async twin of `put`."""
        op, stored = self._put(config, checkpoint, metadata, new_versions, of_run=True)
        await self.log.awrite_of_run(op)
        if self._keeper is not None and (work := self._after_put(config)) is not None:
            await self.log.driver.acall(work)
        return stored

    def _put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        *,
        of_run: bool = False,
    ) -> tuple[Operation[None], RunnableConfig]:
        key, configurable, place = self._place(config, write=True)
        if not is_plain(checkpoint, metadata, new_versions):
            checkpoint = checked_checkpoint(checkpoint, metadata, new_versions)
        namespace, parent = place
        caches, codec = self.log.caches, self.codec
        # A checkpoint that must follow an expected head is refused anyway if that is gone.
        origin = (
            origin_of(configurable, *place, task=None)
            if of_run and EXPECTED_HEAD not in configurable
            else None
        )
        if origin is not None:
            caches.late_writes.follow(checkpoint["id"], origin)
        lists = partial(caches.list_at, key.id, codec.key, namespace)
        packed = pack_checkpoint(
            codec,
            config,
            place,
            checkpoint,
            metadata,
            new_versions,
            self.metadata_keys,
            known=lists,
        )
        known: Any = {"now": now_ms(), "caches": caches, "codec": codec, "origin": origin}
        op = Operation(checkpoint_ops.put_checkpoint, key, namespace, packed, **known)
        if self.log.driver.remote:
            op.heavy = is_heavy(
                value for value in packed.values.values() if isinstance(value, PackedValue)
            )
        return op, config_of(configurable["thread_id"], namespace, packed.id)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store a task's writes for a checkpoint; they are stored when this returns.

        Raises:
            ThreadNotFound: The thread belongs to another owner.
            ThreadDeleted: The config names a checkpoint of a thread that has been deleted.
            InvalidThreadId: The config has no thread_id.
        """
        self.log.write_of_run(self._put_writes(config, writes, task_id, task_path, of_run=True))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Async twin of `put_writes`."""
        await self.log.awrite_of_run(
            self._put_writes(config, writes, task_id, task_path, of_run=True)
        )

    def _put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
        *,
        of_run: bool = False,
    ) -> Operation[None]:
        key, configurable, (namespace, checkpoint_id) = self._place(config, write=True)
        task, path = task_id, task_path
        if (
            type(checkpoint_id) is not str
            or type(task) is not str
            or type(path) is not str
            or not f"{task}{path}".isascii()
            or "\0" in task
        ):
            namespace, checkpoint_id, task, path = checked_task(configurable, task_id, task_path)
        codec = self.codec
        packed = []
        for index, (channel, value) in enumerate(checked_writes(writes)):
            value = codec.pack_value(value, texts=texts_of(channel))
            packed.append(PackedWrite(WRITES_IDX_MAP.get(channel, index), channel, value))
        origin = origin_of(configurable, namespace, checkpoint_id, task=task) if of_run else None
        known: Any = {
            "now": now_ms(),
            "caches": self.log.caches,
            "codec": codec,
            "origin": origin,
        }
        op = Operation(
            write_ops.put_writes,
            key,
            namespace,
            checkpoint_id,
            task,
            path,
            packed,
            asks=not of_run,
            **known,
        )
        if self.log.driver.remote:
            op.heavy = is_heavy(write.value for write in packed)
        return op

    # -- reading -----------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that the config names, or the newest, with its pending writes; or None.

        Raises:
            HeadConflict: The config has an `expected_head`, and another checkpoint is the newest.
        """
        op = self._get(config)
        return None if op is None else self._load(config, self.log.driver.run(op, write=False))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Async twin of `get_tuple`."""
        op = self._get(config)
        return (
            None if op is None else await self._aload(config, await self.log.arun(op, write=False))
        )

    def _get(self, config: RunnableConfig) -> Operation[StoredCheckpoint | None] | None:
        """The operation that reads the config's checkpoint; None if the caller must not see it."""
        key, _, (namespace, checkpoint_id) = self._place(config, write=False)
        if key is None:
            return None
        known: Any = {"caches": self.log.caches, "codec": self.codec, "moment": _moment}
        return Operation(read_ops.get_checkpoint, key, namespace, checkpoint_id, **known)

    def _wanted(self, config: RunnableConfig) -> Wanted | None:
        key = self._key_to_read(config)
        return None if key is None else Wanted(key, *place_of(config["configurable"]))

    async def _aload(
        self, config: RunnableConfig, stored: StoredCheckpoint | None
    ) -> CheckpointTuple | None:
        if stored is None or is_small(stored):
            return self._load(config, stored)
        return await self.log.driver.acall(lambda: self._load(config, stored))

    def _load(
        self, config: RunnableConfig, stored: StoredCheckpoint | None
    ) -> CheckpointTuple | None:
        """The objects of what was read; raises if it is not the head that the config expects."""
        configurable = config["configurable"]
        has_id = bool(configurable.get("checkpoint_id"))
        if EXPECTED_HEAD in configurable and not has_id and not configurable.get("checkpoint_ns"):
            expected = configurable[EXPECTED_HEAD] or None
            head = stored.id if stored is not None else None
            if expected != head:
                raise HeadConflict(thread_key(configurable.get("thread_id")), expected, head)
        if stored is None:
            return None
        late_writes = self.log.caches.late_writes
        if late_writes.begun:
            late_writes.note_found(stored.thread)
        return load_checkpoint(
            self.codec, stored, configurable["thread_id"], config if has_id else None
        )

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, newest first, read in pages: no lock is held between items.

        Args:
            config: The thread, and optionally namespace and checkpoint; None for all threads.
            filter: Values that the metadata must equal, by plain name.
            before: Only checkpoints with a lower id than this config's.
            limit: The maximum number.

        Raises:
            InvalidInput: A filter's key is not a plain name.
        """
        pages = self._pages(config, filter, before, limit)
        while (page := pages.following()) is not None:
            yield from pages.wanted(self.log.run(page, write=False))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Async twin of `list`."""
        pages = self._pages(config, filter, before, limit)
        while (page := pages.following()) is not None:
            for checkpoint in pages.wanted(await self.log.arun(page, write=False)):
                yield checkpoint
                if checkpoint.is_built:  # by the caller, which may have taken long
                    await asyncio.sleep(0)

    def _pages(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> CheckpointPages:
        require_limit(limit)
        query = self._query(config, filter, before)
        return CheckpointPages(query, filter, limit, caches=self.log.caches, codec=self.codec)

    def _query(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
    ) -> read_ops.Query | None:
        """The query of a list; None if nothing can be found."""
        wanted = filter or {}
        plain, step = split_filter(wanted)
        for name in wanted if self.metadata_keys is None else ():
            if is_secret_name(name):
                warn_left_out(name)
        key = ThreadKey("", self.owner) if config is None else self._key_to_read(config)
        if key is None:
            return None
        configurable = {} if config is None else config["configurable"]
        namespace, checkpoint_id = place_of(configurable)
        return read_ops.Query(
            thread=None if config is None else key.id,
            owner=key.owner,
            namespace=None if configurable.get("checkpoint_ns") is None else namespace,
            checkpoint_id=checkpoint_id,
            before=place_of(configurable_of(before))[1] if before else None,
            labels=plain,
            step=step,
        )

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What each channel contributed along the ancestors of a checkpoint, in one operation."""
        return self._get_delta_channel_history(config, channels)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Async twin of `get_delta_channel_history`."""
        return await self.log.driver.acall(
            lambda: self._get_delta_channel_history(config, channels)
        )

    def _get_delta_channel_history(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        key = self._key_to_read(config) if channels else None
        if key is None:
            return {channel: DeltaChannelHistory(writes=[]) for channel in channels}
        op = read_ops.get_delta_history(
            key,
            *place_of(config["configurable"]),
            channels,
            caches=self.log.caches,
            codec=self.codec,
        )
        return {
            channel: load_history(self.codec, entry)
            for channel, entry in self.log.run(op, write=False).items()
        }

    def _after_put(self, config: RunnableConfig) -> Callable[[], object] | None:
        """The upkeep that is due after a put; None if nothing is due."""
        return pruner.after_put(self._keeper, config)

    # -- many at once ------------------------------------------------------------------------------

    def put_all(self, puts: Sequence[bulk.Put], times: Sequence[Times] | None = None) -> None:
        """Store what these calls would, in order: all of it, or nothing if it raises.

        Args:
            puts: Calls of `put` and `put_writes`, for any threads. All of them are in memory at
                once.
            times: The time of each of them. Default: now.

        Raises:
            LangmemExtError: Any error of these calls.
        """
        self.log.run(self._put_all(puts, times), write=True)
        for config in bulk.checkpoints(puts):
            if (work := self._after_put(config)) is not None:
                work()

    async def aput_all(
        self, puts: Sequence[bulk.Put], times: Sequence[Times] | None = None
    ) -> None:
        """Async twin of `put_all`."""
        # Packing may take a while, so it does not run on the event loop.
        op = await self.log.driver.acall(lambda: self._put_all(puts, times))
        await self.log.arun(op, write=True)
        for config in bulk.checkpoints(puts):
            if (work := self._after_put(config)) is not None:
                await self.log.driver.acall(work)

    def _put_all(self, puts: Sequence[bulk.Put], times: Sequence[Times] | None) -> Operation[None]:
        ops = [
            self._put(*arguments)[0] if method == "put" else self._put_writes(*arguments)
            for method, arguments in puts
        ]
        return bulk.together(ops, times, self.owner)

    def get_all(self, configs: Sequence[RunnableConfig]) -> Iterator[CheckpointTuple | None]:
        """The result of `get_tuple` for each of these configs, in order.

        They are read in batches, for any threads, to save round trips; in smaller batches if they
        are large, to save memory. No lock is held between items.

        Raises:
            DamagedRow: The next one is damaged; those before it were returned.
            HeadConflict: A config has an `expected_head`, and another checkpoint is the newest.
        """
        pages = self._named(configs)
        while (op := pages.following()) is not None:
            try:
                page = self.log.run(op, write=False)
            except DamagedRow as error:
                pages.failed(error)
                continue
            for config, stored in pages.with_configs(page):
                yield self._load(config, stored)

    async def aget_all(
        self, configs: Sequence[RunnableConfig]
    ) -> AsyncIterator[CheckpointTuple | None]:
        """Async twin of `get_all`."""
        pages = self._named(configs)
        while (op := pages.following()) is not None:
            try:
                page = await self.log.arun(op, write=False)
            except DamagedRow as error:
                pages.failed(error)
                continue
            for config, stored in pages.with_configs(page):
                yield await self._aload(config, stored)

    def outline(self, thread_ids: Sequence[Any] | None = None) -> bulk.Outline:
        """The ids of checkpoints and pending writes of many threads, in few round trips.

        Args:
            thread_ids: These threads, as far as they exist. Default: all.

        Raises:
            DamagedRow: The checksum of a row does not match.
        """
        return perform(
            bulk.outline(self.log, self.owner, self.codec, thread_ids),
            partial(self.log.run, write=False),
        )

    async def aoutline(self, thread_ids: Sequence[Any] | None = None) -> bulk.Outline:
        """Async twin of `outline`."""
        return await aperform(
            bulk.outline(self.log, self.owner, self.codec, thread_ids),
            partial(self.log.arun, write=False),
        )

    def thread_times(self, thread_ids: Sequence[Any]) -> dict[str, tuple[int, int]]:
        """When threads were first and last written (Unix ms), by id; missing ones are omitted."""
        return perform(
            bulk.thread_times(self.owner, thread_ids), partial(self.log.run, write=False)
        )

    async def athread_times(self, thread_ids: Sequence[Any]) -> dict[str, tuple[int, int]]:
        """Async twin of `thread_times`."""
        return await aperform(
            bulk.thread_times(self.owner, thread_ids), partial(self.log.arun, write=False)
        )

    def _named(self, configs: Sequence[RunnableConfig]) -> NamedCheckpoints:
        return NamedCheckpoints(
            configs,
            [self._wanted(config) for config in configs],
            caches=self.log.caches,
            codec=self.codec,
        )

    # -- forgetting and copying --------------------------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread and all it holds; does nothing if it is missing or another owner's."""
        self.log.run(pruner.drop(self.log, self.owner, thread_id), write=True)

    async def adelete_thread(self, thread_id: str) -> None:
        """Async twin of `delete_thread`."""
        await self.log.arun(pruner.drop(self.log, self.owner, thread_id), write=True)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of these runs, by the `run_id` of their metadata, in all threads.

        A checkpoint from which a later one's `DeltaChannel` is rebuilt stays: without it the later
        one would read differently. What a run wrote to a checkpoint of an earlier run (the answer
        to a question) stays with that checkpoint, as with every saver. A thread without any
        checkpoints left still exists, and is empty.
        """
        self.log.run(pruner.drop_runs(self.log, self.owner, self.codec, run_ids), write=True)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Async twin of `delete_for_runs`."""
        await self.log.arun(pruner.drop_runs(self.log, self.owner, self.codec, run_ids), write=True)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread and everything it holds; does nothing if it does not exist.

        The two share nothing afterwards. Ids and versions are the source's; metadata that names the
        source's `thread_id` names the copy's. The copy belongs to the source's owner. Its cost
        depends on its rows: nothing is decoded or encoded again.

        Raises:
            InvalidInput: The target is the source, or is not empty.
            ThreadNotFound: The target belongs to another owner.
        """
        self.log.run(
            pruner.copied(self.log, self.owner, source_thread_id, target_thread_id), write=True
        )

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Async twin of `copy_thread`."""
        await self.log.arun(
            pruner.copied(self.log, self.owner, source_thread_id, target_thread_id), write=True
        )

    def prune(  # type: ignore[override]  # it says what it did
        self,
        thread_ids: Sequence[str],
        *,
        strategy: pruner.Strategy = "keep_latest",
        keep_last: int | None = None,
        older_than: timedelta | datetime | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        """Delete checkpoints of threads, and what nothing refers to any more.

        What stays reads as before. The newest checkpoint of every namespace always stays, and so do
        the ancestors from which its `DeltaChannel`s are rebuilt, each of them whole: a graph with
        several such channels, stored at different times, keeps more than asked. A checkpoint whose
        parent was deleted still names it. Branches are not distinguished: the newest checkpoint of
        a namespace is the one with the highest id, and the head of an older branch is deleted with
        the rest.

        Each thread is pruned in its own transaction, or left as it is.

        Args:
            thread_ids: The threads; missing ones are skipped.
            strategy: `keep_latest`: keep the newest checkpoint of each namespace. `delete`: delete
                the threads with everything they hold, even if they wait for an answer.
            keep_last: How many of the newest checkpoints of each namespace to keep, instead of one.
            older_than: Delete only checkpoints older than this duration, or made before this time;
                one made exactly then stays.
            dry_run: Show what would be deleted; change nothing.

        Raises:
            InvalidInput: An argument is invalid; nothing was changed.
        """
        chosen, total = pruner.Chosen(strategy, keep_last, older_than), Pruned()
        for op in pruner.pruned(
            self.log, self.owner, self.codec, thread_ids, chosen, dry_run=dry_run
        ):
            total += self.log.run(op, write=not dry_run)
        return total

    async def aprune(  # type: ignore[override]  # it says what it did
        self,
        thread_ids: Sequence[str],
        *,
        strategy: pruner.Strategy = "keep_latest",
        keep_last: int | None = None,
        older_than: timedelta | datetime | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        """Async twin of `prune`."""
        chosen, total = pruner.Chosen(strategy, keep_last, older_than), Pruned()
        for op in pruner.pruned(
            self.log, self.owner, self.codec, thread_ids, chosen, dry_run=dry_run
        ):
            total += await self.log.arun(op, write=not dry_run)
        return total

    def sweep(self, *, now: datetime | None = None, dry_run: bool = False) -> Pruned:
        """Apply the saver's `Retention` to every thread that it sees, each in its own transaction.

        The clock is read once, so what expires does not depend on how long the sweep takes. A
        thread written to in the meantime stays; a damaged one is skipped, with a warning.

        Args:
            now: The time to use as now, with a time zone.
            dry_run: Show what would be deleted; change nothing.

        Raises:
            InvalidInput: The saver has no retention, or `now` has no time zone.
        """
        return run_steps(self.log, pruner.sweep_steps(self._keeper, now, dry_run=dry_run))

    async def asweep(self, *, now: datetime | None = None, dry_run: bool = False) -> Pruned:
        """Async twin of `sweep`."""
        return await arun_steps(self.log, pruner.sweep_steps(self._keeper, now, dry_run=dry_run))

    def sweeper(self, *, every: timedelta = EVERY) -> Sweeper:
        """`sweep` periodically on a background thread: `with saver.sweeper(): …`.

        Without a retention no thread is deleted: only items of the store that have expired.
        """
        return Sweeper(self.log, self._sweeps(), every)

    def asweeper(self, *, every: timedelta = EVERY) -> AsyncSweeper:
        """`sweeper` on the running event loop: `async with saver.asweeper(): …`."""
        return AsyncSweeper(self.log, self._sweeps(), every)

    def _sweeps(self) -> Callable[[], Steps]:
        place = self.log, self.owner, self.codec
        keeper = self._keeper or pruner.keeper_of(Retention(), *place, Emitter())
        return lambda: pruner.sweep_steps(keeper, None, dry_run=False)

    def compact(self, *, full: bool = False) -> int:
        """Return the space of deleted data to the file system; see `MessageLog.compact`."""
        return self.log.compact(full=full)

    async def acompact(self, *, full: bool = False) -> int:
        """Async twin of `compact`."""
        return await self.log.acompact(full=full)

    # -- versions, serializer, keys ----------------------------------------------------------------

    def get_next_version(self, current: Any, channel: None) -> Any:
        """The next version, in LangGraph's fixed-width form, or a number where numbers are used."""
        return next_version(current, random.randrange(MINOR_DIGITS))

    @property
    def codec(self) -> MessageCodec:
        """Packs and loads values by the serializer, which `with_allowlist` replaces on a copy."""
        if self._codec_serde is not self.serde:
            self._codec, self._codec_serde = codec_of(self.serde), self.serde
        return self._codec

    def _place(
        self, config: RunnableConfig, *, write: bool
    ) -> tuple[Any, Mapping[str, Any], tuple[str, str | None]]:
        """The thread, `configurable`, namespace and checkpoint of a config.

        The thread is None if the caller must not see it. Plain values, as in LangGraph's own
        configs, are taken as they are; all others are checked.
        """
        try:
            configurable = config["configurable"]
            thread_id = configurable["thread_id"]
            namespace = configurable.get("checkpoint_ns") or ""
            checkpoint_id = configurable.get("checkpoint_id") or ""
            text = thread_id + namespace + checkpoint_id
            if (
                type(thread_id) is type(namespace) is type(checkpoint_id) is str
                and text.isascii()
                and "\0" not in text
                and thread_id
                and "owner" not in configurable
            ):
                place = namespace, checkpoint_id or None
                return ThreadKey(thread_id, self.owner), configurable, place
        except (TypeError, KeyError, AttributeError):
            pass
        key = self._key_to_write(config) if write else self._key_to_read(config)
        return key, configurable_of(config), place_of(configurable_of(config))

    def _key_to_read(self, config: RunnableConfig) -> ThreadKey | None:
        """The thread of a config; None if that names another owner than the saver's."""
        configurable = configurable_of(config)
        owner = owner_key(configurable.get("owner"))
        key = ThreadKey(thread_key(configurable.get("thread_id")), self.owner or owner)
        return key if owner is None or key.owner == owner else None

    def _key_to_write(self, config: RunnableConfig) -> ThreadKey:
        key = self._key_to_read(config)
        if key is None:
            raise ThreadNotFound(
                "the config names another owner than the saver's: use a saver bound to that owner"
            )
        return key


def _moment() -> bytes:
    return uuid6().bytes
