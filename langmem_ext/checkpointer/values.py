"""LangGraph's checkpoints as plain values ready to be stored, and back, without any change."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, Final, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
)
from langgraph.checkpoint.serde.types import RESUME

from langmem_ext._internal.interruption import pass_on
from langmem_ext.checkpointer.metadata import (
    EXPECTED_HEAD,
    INTEGER_BITS,
    is_scalar,
    labels_of,
    metadata_of,
    split_metadata,
)
from langmem_ext.errors import DamagedRow, InvalidInput, cause, safe_text
from langmem_ext.log.codec import MessageCodec, Texts
from langmem_ext.log.message_cache import AT_ONCE
from langmem_ext.messages.text import column_name
from langmem_ext.storage.cache import KnownList
from langmem_ext.storage.rows.checkpoint import Header, PackedCheckpoint
from langmem_ext.types import DeltaHistory, PackedValue, StoredCheckpoint

T = TypeVar("T")

WAITING_CHANNEL: Final = "waiting_for_param"
"""The channel that says which parameter a graph waits for; its value, a name, is shown in the
thread's row."""

INPUT_CHANNEL: Final = "__start__"
"""LangGraph's channel for a graph's input: its long texts are the texts of messages to come."""

MESSAGES_CHANNEL: Final = "messages"
"""The channel of LangGraph's own `MessagesState`: a bare text written to it becomes a message."""

HELD: Final[Mapping[str, Texts]] = {INPUT_CHANNEL: "all", MESSAGES_CHANNEL: "conversation"}
"""What is lifted out of a channel's value besides messages (`MessageCodec.pack_value`)."""

LONG: Final = 64
"""The maximum number of a list's messages that an event loop builds itself."""

SMALL_BYTES: Final = 32 * 1024
"""The maximum bytes of values, besides messages, that an event loop loads itself."""

HEAVY_BYTES: Final = 128 * 1024
"""The maximum bytes of values, besides messages, that a PostgreSQL operation stores on an event
loop."""

_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*")

_KNOWN_KEYS: Final = (
    "v",
    "ts",
    "id",
    "channel_values",
    "channel_versions",
    "versions_seen",
    "updated_channels",
)
_ALL_KNOWN: Final = frozenset(_KNOWN_KEYS)


def pack_checkpoint(
    codec: MessageCodec,
    config: RunnableConfig,
    place: tuple[str, str | None],
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    metadata_keys: Collection[str] | None = None,
    *,
    known: Callable[[str], KnownList | None] | None = None,
) -> PackedCheckpoint:
    """A checkpoint as it is now, with the metadata that the config adds (`metadata_of`).

    Args:
        codec: Packs the values.
        config: The config of the put.
        place: The config's namespace, and the id of the parent.
        checkpoint: The checkpoint.
        metadata: The graph's metadata of it.
        new_versions: The versions of the channels that it changes.
        metadata_keys: The names in `configurable` that become metadata; None for all that do not
            look secret.
        known: Returns the cached list of a channel.
    """
    values = checkpoint.get("channel_values", {})
    packed: dict[str, PackedValue | Callable[[], PackedValue]] = {}
    for channel, value in values.items():
        if channel not in new_versions:
            packed[channel] = partial(codec.pack_value, value, texts=HELD.get(channel, "none"))
        else:
            before = known(channel) if known is not None and type(value) is list else None
            packed[channel] = codec.pack_value(value, texts=HELD.get(channel, "none"), known=before)
    label, step, details = split_metadata(metadata_of(config, metadata, metadata_keys))
    seen, updated = checkpoint.get("versions_seen", {}), checkpoint.get("updated_channels")
    header = Header(
        checkpoint.get("v", 0),
        checkpoint.get("ts", ""),
        dict(checkpoint.get("channel_versions", {})),
        dict(zip(seen, map(dict, seen.values()), strict=True)),
        None if updated is None else list(updated),
        extra=None if checkpoint.keys() == _ALL_KNOWN else _further(codec, checkpoint),
        details=codec.pack_plain(details) if details else None,
    )
    configurable, waiting = config["configurable"], values.get(WAITING_CHANNEL)
    return PackedCheckpoint(
        checkpoint["id"],
        place[1],
        header,
        packed,
        label,
        step,
        None if waiting is None else column_name(waiting),
        EXPECTED_HEAD in configurable and not configurable.get("checkpoint_ns"),
        # A turn names the head that it began with in all of its puts; its own checkpoints have
        # become the head since.
        place[1] or configurable.get(EXPECTED_HEAD) or None,
    )


def _further(codec: MessageCodec, checkpoint: Checkpoint) -> bytes | None:
    """A checkpoint's further keys, and the missing ones of LangGraph's own, encoded."""
    further = {name: value for name, value in checkpoint.items() if name not in _ALL_KNOWN}
    absent = [name for name in _KNOWN_KEYS if name not in checkpoint]
    return codec.pack_plain([further, absent]) if further or absent else None


def texts_of(channel: str) -> Texts:
    """Which long texts of a pending write will be those of messages."""
    if channel == RESUME:
        return "all"
    return "messages" if channel == MESSAGES_CHANNEL else "written"


def split_filter(wanted: Mapping[str, Any]) -> tuple[dict[str, Any], int | None]:
    """The scalars that a list's filter asks for, and the step: what the database compares.

    Raises:
        InvalidInput: A key is no plain name.
    """
    if not isinstance(wanted, Mapping):
        raise InvalidInput(
            f"a metadata filter must be a dict like {{'source': 'input'}}, not {wanted!r}"
        )
    for name in wanted:
        if not isinstance(name, str) or not _PLAIN_NAME.fullmatch(name):
            raise InvalidInput(
                "a metadata filter's key must be a plain name (letters, digits, '_', '-', '.'),"
                f" not {name!r}"
            )
    plain = {name: value for name, value in wanted.items() if is_scalar(value)}
    step = plain.pop("step", None)
    return plain, step if type(step) is int and step.bit_length() < INTEGER_BITS else None


def matches(metadata: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether metadata holds all that a list's filter asks for."""
    return not wanted or all(metadata.get(name) == value for name, value in wanted.items())


def is_small(stored: StoredCheckpoint) -> bool:
    """Whether to load a checkpoint takes no time to speak of, on an event loop."""
    values = [*stored.values.values(), *(write.value for write in stored.writes)]
    return (
        sum(len(value.messages) for value in values) <= LONG
        and sum(len(value.body or b"") for value in values) <= SMALL_BYTES
    )


def is_heavy(values: Iterable[PackedValue]) -> bool:
    """Whether to store what is packed takes a while."""
    fresh = size = 0
    for value in values:
        fresh += value.fresh
        size += len(value.body or b"")
    return fresh > AT_ONCE or size > HEAVY_BYTES


def load_checkpoint(
    codec: MessageCodec,
    stored: StoredCheckpoint,
    thread_id: Any,
    config: RunnableConfig | None = None,
) -> CheckpointTuple:
    """A checkpoint as LangGraph reads it, sharing nothing with any other.

    Args:
        codec: Loads the values.
        stored: The checkpoint.
        thread_id: The thread's id as the caller named it.
        config: The config that named it by its id; None if it was found otherwise.

    Raises:
        DamagedRow: A value does not decode.
    """
    try:
        metadata = _metadata(codec, stored)
        checkpoint, writes = _state(codec, stored)
    except Exception as error:
        pass_on(error)
        raise _undecodable(stored, error) from cause(error)
    if config is None:
        config = config_of(thread_id, stored.namespace, stored.id)
    parent = stored.parent
    before = None if parent is None else config_of(thread_id, stored.namespace, parent)
    return CheckpointTuple(config, checkpoint, metadata, before, writes)


class ListedCheckpoint(CheckpointTuple):
    """A checkpoint of a list: its state is built when it is first used, from its own objects.

    It is equal to the `CheckpointTuple`; most callers who go through a history use a few states.
    """

    _build: Callable[[], tuple[Checkpoint, list[PendingWrite]]]

    def __new__(
        cls,
        codec: MessageCodec,
        stored: StoredCheckpoint,
        thread_id: Any,
        config: RunnableConfig | None = None,
    ) -> ListedCheckpoint:
        """See `load_checkpoint`."""
        if config is None:
            config = config_of(thread_id, stored.namespace, stored.id)
        parent = stored.parent
        before = None if parent is None else config_of(thread_id, stored.namespace, parent)
        metadata = _decoded(stored, lambda: _metadata(codec, stored))
        self = tuple.__new__(cls, (config, None, metadata, before, None))
        self._build = lambda: _decoded(stored, lambda: _state(codec, stored))
        return self

    @property
    def is_built(self) -> bool:
        """Whether its state has been looked at."""
        return "_state" in vars(self)

    @cached_property
    def _state(self) -> tuple[Checkpoint, list[PendingWrite]]:
        return self._build()

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint."""
        return self._state[0]

    @property
    def pending_writes(self) -> list[PendingWrite]:
        """Its pending writes."""
        return self._state[1]

    def __iter__(self) -> Iterator[Any]:
        return iter(
            (self.config, self.checkpoint, self.metadata, self.parent_config, self.pending_writes)
        )

    def __getitem__(self, index: Any) -> Any:
        return tuple(self)[index]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == (tuple(other) if isinstance(other, tuple) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]  # as of a tuple that holds dicts

    def __repr__(self) -> str:
        return repr(CheckpointTuple(*self))

    def __reduce__(self) -> Any:
        return CheckpointTuple, tuple(self)

    def _replace(self, **changes: Any) -> Any:
        return CheckpointTuple(*self)._replace(**changes)


def _decoded(stored: StoredCheckpoint, build: Callable[[], T]) -> T:
    try:
        return build()
    except Exception as error:
        pass_on(error)
        raise _undecodable(stored, error) from cause(error)


def _undecodable(stored: StoredCheckpoint, error: Exception) -> DamagedRow:
    return DamagedRow(
        f"checkpoint {stored.id} of thread {stored.thread!r} holds a value that does not decode"
        f" ({safe_text(error)}): other threads stay readable; open it with the serializer that"
        " wrote it, fork from an earlier checkpoint, or delete the thread"
    )


def _state(codec: MessageCodec, stored: StoredCheckpoint) -> tuple[Checkpoint, list[PendingWrite]]:
    load, values, seen = codec.load_value, stored.values, stored.seen
    checkpoint: Any = {
        "v": stored.v,
        "ts": stored.ts,
        "id": stored.id,
        "channel_values": dict(zip(values, map(load, values.values()), strict=True)),
        "channel_versions": dict(stored.versions),
        "versions_seen": dict(zip(seen, map(dict, seen.values()), strict=True)),
        "updated_channels": None if stored.updated is None else list(stored.updated),
    }
    if stored.extra is not None:
        further, absent = codec.load_plain(stored.extra)
        checkpoint = {
            name: value for name, value in checkpoint.items() if name not in absent
        } | further
    if not stored.writes:
        return checkpoint, []
    return checkpoint, [(write.task, write.channel, load(write.value)) for write in stored.writes]


def _metadata(codec: MessageCodec, stored: StoredCheckpoint) -> CheckpointMetadata:
    metadata: Any = labels_of(stored.label)
    if stored.step is not None:
        metadata["step"] = stored.step
    if stored.details is not None:
        metadata |= codec.load_plain(stored.details)
    return cast(CheckpointMetadata, metadata)


def load_history(codec: MessageCodec, entry: DeltaHistory) -> DeltaChannelHistory:
    """What a channel contributed, in LangGraph's form."""
    history = DeltaChannelHistory(
        writes=[
            (write.task, write.channel, codec.load_value(write.value)) for write in entry.writes
        ]
    )
    if entry.seed is not None:
        history["seed"] = codec.load_value(entry.seed)
    return history


def config_of(thread_id: Any, namespace: str, checkpoint_id: str) -> RunnableConfig:
    """The config that names a checkpoint."""
    return {
        "configurable": {
            "thread_id": thread_id,
            "checkpoint_ns": namespace,
            "checkpoint_id": checkpoint_id,
        }
    }
