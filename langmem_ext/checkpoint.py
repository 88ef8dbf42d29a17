"""`DeltaSaver`: a LangGraph checkpointer that stores every message once."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Any, Unpack

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.serde.base import SerializerProtocol

from langmem_ext.bulk import BulkSaver
from langmem_ext.checkpoint_pages import CheckpointPages
from langmem_ext.codec import MessageCodec, codec_of
from langmem_ext.errors import HeadConflict, ThreadNotFound
from langmem_ext.labels import EXPECTED_HEAD
from langmem_ext.log import MessageLog, owner_key, thread_key
from langmem_ext.opening import Done, Opening, SaverOptions
from langmem_ext.packing import (
    config_of,
    is_heavy,
    is_small,
    load_checkpoint,
    load_history,
    pack_checkpoint,
    split_filter,
    texts_of,
)
from langmem_ext.retention import Retention, require_retention
from langmem_ext.saver_terms import (
    checked_checkpoint,
    checked_task,
    checked_writes,
    configurable_of,
    is_plain,
    place_of,
    require_limit,
    several,
)
from langmem_ext.serde import DataSerializer
from langmem_ext.shown import Showing, Shown
from langmem_ext.storage import checkpoint_ops, read_ops, write_ops
from langmem_ext.storage.address import Address
from langmem_ext.storage.clock import now_ms
from langmem_ext.storage.effects import Operation
from langmem_ext.storage.header import MINOR_DIGITS, next_version
from langmem_ext.storage.late_writes import origin_of
from langmem_ext.storage.many_ops import Wanted
from langmem_ext.storage.sqlite import Synchronous
from langmem_ext.telemetry import Emitter, Sink
from langmem_ext.types import PackedWrite, StoredCheckpoint, ThreadKey


class DeltaSaver(Showing, BulkSaver):
    """A drop-in checkpointer: each message, and each large value, is stored once, whatever the number of checkpoints that hold it.

    One object serves `invoke` and `ainvoke`, from any thread and any event loop; many processes may use one file.

    Args:
        source: An open `sqlite3.Connection` (with `check_same_thread=False`), a URL or path, or a `MessageLog`.
        serde: A serializer to use instead of the default, which restores data types and never a callable (`langmem_ext.serde`). With one
            of your own, all of a message goes through it and the database shows no text.
        owner: Bind the saver to an owner: threads of others are not there for it, and its threads are marked with the owner.
        retention: What the database is to keep. The saver applies it in small steps as it stores checkpoints; none fails for it.
        metadata_keys: The names in `configurable` whose values become metadata, which anyone who may list checkpoints reads. Default: all
            scalars, like LangGraph, but for names that are taken for a secret's (`langmem_ext._internal.secret_names`).
        telemetry: Sinks that are told how many threads the retention has deleted (`expired`).

    A config with `configurable["expected_head"]` (the id of the newest checkpoint as the caller knows it; empty for a new thread) writes
    only while nobody else does: `HeadConflict` where another writer has moved the head. Without it both writers' checkpoints stand, as
    branches, and the latest id is the head.

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
        require_retention(retention)  # what cannot be used is said before there is a file
        self.owner, emitter = owner_key(owner), Emitter(telemetry)
        self.metadata_keys = None if metadata_keys is None else frozenset(several(metadata_keys, "metadata_keys"))
        self.log = source if isinstance(source, MessageLog) else MessageLog.open(source)
        self._codec = codec_of(self.serde)
        self._codec_serde = self.serde
        self._keep(retention, emitter)

    # -- opening and closing -------------------------------------------------------------------------------------------------------------

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
        require_retention(retention)
        owner, telemetry = owner_key(owner), Emitter(telemetry).sinks
        metadata_keys = None if metadata_keys is None else several(metadata_keys, "metadata_keys")
        log = MessageLog.open(url, synchronous=synchronous, compress=compress)
        return cls(log, serde=serde, owner=owner, retention=retention, metadata_keys=metadata_keys, telemetry=telemetry)

    @classmethod
    async def aopen(cls, url: Address, **options: Unpack[SaverOptions]) -> DeltaSaver:
        """Async twin of `open`, which does not block the event loop. Close it by `aclose`.

        Example:
            `saver = await DeltaSaver.aopen("memory.db")`
        """
        return await asyncio.to_thread(partial(cls.open, url, **options))

    @classmethod
    def from_conn_string(cls, url: Address, **options: Unpack[SaverOptions]) -> Opening[DeltaSaver]:
        """A saver for the length of a `with` or an `async with`, opened as by `open` and with its options."""
        return Opening(partial(cls.open, url, **options))

    def for_owner(self, owner: str) -> DeltaSaver:
        """A saver on the same log that is bound to an owner."""
        kept: dict[str, Any] = {"retention": self.retention, "metadata_keys": self.metadata_keys, "telemetry": self.telemetry}
        return type(self)(self.log, serde=self.serde, owner=owner, **kept)

    def _shown(self) -> Shown:
        return Shown(self.log.driver, self.owner)

    def setup(self) -> Awaitable[None]:
        """Nothing is left to do: opening migrates. Kept for code that calls it, with or without `await`."""
        return Done()

    def close(self) -> None:
        """Close the database; idempotent."""
        self.log.close()

    async def aclose(self) -> None:
        """Async twin of `close`."""
        await self.log.aclose()

    def lease(self, thread_id: str, *, wait: float = 10) -> AbstractContextManager[None]:
        """Hold the right to drive a thread, against every other holder on any machine process that uses the database.

        Args:
            thread_id: The thread.
            wait: Seconds to wait for another holder.

        Raises:
            ThreadBusy: Another caller still holds it after that.
        """
        return self.log.driver.lease(thread_key(thread_id), wait=wait)

    def alease(self, thread_id: str, *, wait: float = 10) -> AbstractAsyncContextManager[None]:
        """Async twin of `lease`."""
        return self.log.driver.alease(thread_key(thread_id), wait=wait)

    # -- writing -------------------------------------------------------------------------------------------------------------------------

    def put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> RunnableConfig:
        """Store a checkpoint; it is stored when this returns.

        Raises:
            ThreadNotFound: The thread belongs to another owner.
            ThreadDeleted: The config names a checkpoint of a thread that was deleted since.
            HeadConflict: The config names an `expected_head`, and the newest checkpoint is not the one that this one follows; or, where the
                config names none to follow, not the expected one.
            InvalidThreadId: The config names no thread.
        """
        op, stored = self._put(config, checkpoint, metadata, new_versions, of_run=True)
        self.log.write_of_run(op)
        if self._keeper is not None and (work := self._after_put(config)) is not None:
            work()
        return stored

    async def aput(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
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
        indexes, codec = self.log.indexes, self.codec
        # One that must follow an expected head is refused where that is gone.
        origin = origin_of(configurable, *place, writes=False) if of_run and EXPECTED_HEAD not in configurable else None
        if origin is not None:
            indexes.late_writes.follow(checkpoint["id"], origin)
        lists = partial(indexes.list_at, key.id, codec.key, namespace)
        packed = pack_checkpoint(codec, config, place, checkpoint, metadata, new_versions, self.metadata_keys, known=lists)
        known: Any = {"now": now_ms(), "indexes": indexes, "codec": codec, "origin": origin}
        op = Operation(checkpoint_ops.put_checkpoint, key, namespace, packed, **known)
        if self.log.driver.remote:
            op.heavy = is_heavy(packed.values.values())
        return op, config_of(configurable["thread_id"], namespace, packed.id)

    def put_writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        """Store a task's writes for a checkpoint; they are stored when this returns.

        Raises:
            ThreadNotFound: The thread belongs to another owner.
            ThreadDeleted: The config names a checkpoint of a thread that was deleted since.
            InvalidThreadId: The config names no thread.
        """
        self.log.write_of_run(self._put_writes(config, writes, task_id, task_path, of_run=True))

    async def aput_writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        """Async twin of `put_writes`."""
        await self.log.awrite_of_run(self._put_writes(config, writes, task_id, task_path, of_run=True))

    def _put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "", *, of_run: bool = False
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
        packed = [
            PackedWrite(WRITES_IDX_MAP.get(channel, index), channel, codec.pack_value(value, texts=texts_of(channel)))
            for index, (channel, value) in enumerate(checked_writes(writes))
        ]
        origin = origin_of(configurable, namespace, checkpoint_id, writes=True) if of_run else None
        known: Any = {"now": now_ms(), "indexes": self.log.indexes, "codec": codec, "origin": origin}
        op = Operation(write_ops.put_writes, key, namespace, checkpoint_id, task, path, packed, asks=not of_run, **known)
        if self.log.driver.remote:
            op.heavy = is_heavy(write.value for write in packed)
        return op

    # -- reading -------------------------------------------------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """A checkpoint with its pending writes: the one that the config names, or the newest; None where there is none.

        Raises:
            HeadConflict: The config names an `expected_head`, and another checkpoint is the newest.
        """
        op = self._get(config)
        return None if op is None else self._load(config, self.log.run(op, write=False))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Async twin of `get_tuple`."""
        op = self._get(config)
        return None if op is None else await self._aload(config, await self.log.arun(op, write=False))

    def _get(self, config: RunnableConfig) -> Operation[StoredCheckpoint | None] | None:
        """The operation that reads what the config names; None where it names what nobody may see."""
        key, _, (namespace, checkpoint_id) = self._place(config, write=False)
        if key is None:
            return None
        known: Any = {"indexes": self.log.indexes, "codec": self.codec, "moment": uuid6().bytes}
        return Operation(read_ops.get_checkpoint, key, namespace, checkpoint_id, **known)

    def _wanted(self, config: RunnableConfig) -> Wanted | None:
        key = self._key_to_read(config)
        return None if key is None else Wanted(key, *place_of(config["configurable"]))

    async def _aload(self, config: RunnableConfig, stored: StoredCheckpoint | None) -> CheckpointTuple | None:
        if stored is None or is_small(stored):
            return self._load(config, stored)
        return await self.log.driver.acall(lambda: self._load(config, stored))

    def _load(self, config: RunnableConfig, stored: StoredCheckpoint | None) -> CheckpointTuple | None:
        """The objects of what was read; raises where it is not the head that the config expects."""
        configurable = config["configurable"]
        asked = bool(configurable.get("checkpoint_id"))
        if EXPECTED_HEAD in configurable and not asked and not configurable.get("checkpoint_ns"):
            expected, found = configurable[EXPECTED_HEAD] or None, stored.id if stored is not None else None
            if expected != found:
                raise HeadConflict(thread_key(configurable.get("thread_id")), expected, found)
        late_writes = self.log.indexes.late_writes
        if stored is None:
            if not asked and not configurable.get("checkpoint_ns"):
                late_writes.begin(thread_key(configurable.get("thread_id")), uuid6().bytes)
            return None
        if late_writes.begun:
            late_writes.found(stored.thread)
        return load_checkpoint(self.codec, stored, configurable["thread_id"], config if asked else None)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, newest first, read a page at a time: no lock is held while the caller works.

        Args:
            config: Thread, and where given namespace and checkpoint; None for all threads.
            filter: What the metadata must equal, by plain name.
            before: Only checkpoints with a lower id than this config's.
            limit: At most so many.

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
            for found in pages.wanted(await self.log.arun(page, write=False)):
                yield found
                if found.is_built:  # by the caller, and it may have been long
                    await asyncio.sleep(0)

    def _pages(
        self, config: RunnableConfig | None, filter: dict[str, Any] | None, before: RunnableConfig | None, limit: int | None
    ) -> CheckpointPages:
        require_limit(limit)
        query = self._query(config, filter, before)
        return CheckpointPages(query, filter, limit, indexes=self.log.indexes, codec=self.codec)

    def _query(self, config: RunnableConfig | None, filter: dict[str, Any] | None, before: RunnableConfig | None) -> read_ops.Query | None:
        """What is asked for; None if nothing can be found."""
        plain, step = split_filter(filter or {})
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

    def get_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, DeltaChannelHistory]:
        """What each channel contributed along the ancestors of a checkpoint, in one operation."""
        return self._get_delta_channel_history(config, channels)

    async def aget_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, DeltaChannelHistory]:
        """Async twin of `get_delta_channel_history`."""
        return await self.log.driver.acall(lambda: self._get_delta_channel_history(config, channels))

    def _get_delta_channel_history(self, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, DeltaChannelHistory]:
        key = self._key_to_read(config) if channels else None
        if key is None:
            return {channel: DeltaChannelHistory(writes=[]) for channel in channels}
        op = read_ops.get_delta_history(key, *place_of(config["configurable"]), channels, indexes=self.log.indexes, codec=self.codec)
        return {channel: load_history(self.codec, entry) for channel, entry in self.log.run(op, write=False).items()}

    # -- versions, serializer, keys ------------------------------------------------------------------------------------------------------

    def get_next_version(self, current: Any, channel: None) -> Any:
        """The next version in LangGraph's fixed-width string form; a thread that has numbers goes on in numbers."""
        return next_version(current, random.randrange(MINOR_DIGITS))

    @property
    def codec(self) -> MessageCodec:
        """Packs and loads values by the saver's serializer, which `with_allowlist` replaces on a copy."""
        if self._codec_serde is not self.serde:
            self._codec, self._codec_serde = codec_of(self.serde), self.serde
        return self._codec

    def _place(self, config: RunnableConfig, *, write: bool) -> tuple[Any, Mapping[str, Any], tuple[str, str | None]]:
        """The thread that a config names, its `configurable`, and the namespace and checkpoint; no thread where nobody may see it.

        What is plain, as LangGraph's configs are, is taken as it is; all else is looked at.
        """
        try:
            configurable = config["configurable"]
            thread_id, namespace = configurable["thread_id"], configurable.get("checkpoint_ns") or ""
            checkpoint_id = configurable.get("checkpoint_id") or None
            if (
                type(thread_id) is str
                and type(namespace) is str
                and (checkpoint_id is None or type(checkpoint_id) is str)
                and "owner" not in configurable
                and thread_id
                and "\0" not in (text := f"{thread_id}{namespace}{checkpoint_id}")
                and text.isascii()
            ):
                return ThreadKey(thread_id, self.owner), configurable, (namespace, checkpoint_id)
        except (TypeError, KeyError, AttributeError):
            pass
        key = self._key_to_write(config) if write else self._key_to_read(config)
        return key, configurable_of(config), place_of(configurable_of(config))

    def _key_to_read(self, config: RunnableConfig) -> ThreadKey | None:
        """The thread that the config names; None where the saver is bound to another owner than the config."""
        configurable = configurable_of(config)
        asked = owner_key(configurable.get("owner"))
        key = ThreadKey(thread_key(configurable.get("thread_id")), self.owner or asked)
        return key if asked is None or key.owner == asked else None

    def _key_to_write(self, config: RunnableConfig) -> ThreadKey:
        key = self._key_to_read(config)
        if key is None:
            raise ThreadNotFound("the config names another owner than the saver is bound to: use a saver bound to that owner")
        return key

    def __enter__(self) -> DeltaSaver:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> DeltaSaver:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()
