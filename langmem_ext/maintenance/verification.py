"""Compares imported checkpoints with their source: values and types must be equal.

The comparison is independent of the import: both sides are decoded to values. Classes of the
application are not built; a placeholder for each says which class it is and what it would be built
from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, Final

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.jsonplus import EXT_PYDANTIC_V2, JsonPlusSerializer

from langmem_ext.checkpointer.values import config_of, load_checkpoint
from langmem_ext.errors import StorageError
from langmem_ext.log.codec import ForeignCodec, MessageCodec
from langmem_ext.log.message_log import MessageLog, thread_key
from langmem_ext.log.restore import RestoreHook, RestorePolicy
from langmem_ext.maintenance.transcoding import Reader, RowReader, find_message, load_metadata
from langmem_ext.messages.packed import unpack
from langmem_ext.storage.checkpoints import get as read_ops
from langmem_ext.storage.operation import Operation
from langmem_ext.storage.sqlite.saver_file import SaverFile
from langmem_ext.types import PackedValue, Snapshot, ThreadKey

STEP: Final = 64
"""Checkpoints that are compared in one step."""

_plain = JsonPlusSerializer()


class NamingPolicy(RestorePolicy):
    """Builds messages and LangGraph's safe types; a placeholder for every other class names it."""

    def find(self, module: str, name: str) -> Any:
        """What builds the value, or its placeholder."""
        message = find_message(module, name)
        if message is not None:
            return message
        return (
            super().find(module, name)
            if (module, name) in SAFE_MSGPACK_TYPES
            else partial(_named, module, name)
        )


def _named(module: str, name: str, /, *args: Any, **fields: Any) -> dict[str, Any]:
    return {"class": [module, name], "args": list(args), "fields": fields}


class Verification:
    """Compares one thread.

    Args:
        file: Where it came from.
        log: Where it is.
        reader: Decodes the rows of the source.
        codec: The target's.
        thread: The thread's id.
        owner: Whose it is.
    """

    def __init__(
        self,
        file: SaverFile,
        log: MessageLog,
        reader: Reader,
        codec: MessageCodec,
        thread: str,
        owner: str | None,
    ) -> None:
        self._file = file
        self._log = log
        self._thread = thread
        self._owner = owner
        self._reader = reader
        self._codec = codec if isinstance(codec, ForeignCodec) else _SharingCodec()
        self._hook = RestoreHook(NamingPolicy())
        self._messages: dict[bytes, Any] = {}
        self._compared: dict[tuple[int, int], tuple[bool, BaseMessage, BaseMessage]] = {}

    def steps(self, left_out: Collection[tuple[str, str, str]]) -> Iterator[int]:
        """Compare it; gives the number of checkpoints that each step has compared.

        Args:
            left_out: Checkpoints that were not moved: thread, namespace and id.

        Raises:
            StorageError: There is a difference.
        """
        compared = 0
        for namespace, checkpoint in self._file.checkpoints(self._thread):
            if (self._thread, namespace, checkpoint) in left_out:
                continue
            self._compare(namespace, checkpoint)
            compared += 1
            if compared == STEP:
                yield compared
                compared = 0
        self._file.check_unchanged()
        yield compared

    def _compare(self, namespace: str, checkpoint: str) -> None:
        expected, actual = self._source(namespace, checkpoint), self._target(namespace, checkpoint)
        if actual is None:
            differing = ["it is missing"]
        else:
            differing = [
                f"its {name} differs"
                for name, part in _PARTS.items()
                if not self._equal(part(expected), part(actual))
            ]
        if differing:
            raise StorageError(
                f"checkpoint {checkpoint} of thread {self._thread!r} (namespace {namespace!r}) is"
                f" not as in the source: {differing[0]}. The source is unchanged; delete the thread"
                " in the target and import it again, if nobody has gone on with it there"
            )

    # -- reading both ------------------------------------------------------------------------------

    def _source(self, namespace: str, checkpoint_id: str) -> CheckpointTuple:
        row = self._file.checkpoint(self._thread, namespace, checkpoint_id)
        assert row is not None, "listed a moment ago, in the same transaction"
        return CheckpointTuple(
            config=config_of(self._thread, namespace, checkpoint_id),
            checkpoint=self._load(row.kind, row.blob),
            metadata=load_metadata(row.metadata),
            parent_config=(
                None if row.parent is None else config_of(self._thread, namespace, row.parent)
            ),
            pending_writes=[
                (write.task, write.channel, self._load(write.kind, write.blob))
                for write in self._file.writes(self._thread, namespace, checkpoint_id)
            ],
        )

    def _target(self, namespace: str, checkpoint_id: str) -> CheckpointTuple | None:
        key = ThreadKey(thread_key(self._thread), self._owner)
        op = Operation(
            read_ops.get_checkpoint,
            key,
            namespace,
            checkpoint_id,
            caches=self._log.caches,
            codec=self._codec,
        )
        stored = self._log.run(op, write=False)
        if stored is None:
            return None
        checkpoint = load_checkpoint(self._codec, stored, self._thread)
        if not isinstance(self._codec, ForeignCodec):
            return checkpoint
        writes = [
            (task, channel, self._normal(value))
            for task, channel, value in checkpoint.pending_writes or []
        ]
        return checkpoint._replace(
            checkpoint=self._normal(checkpoint.checkpoint), pending_writes=writes
        )

    def _load(self, kind: str, blob: bytes) -> Any:
        if kind == "msgpack" and isinstance(self._reader, RowReader):
            return unpack(blob, self._restore)
        return self._normal(self._reader.load(kind, blob))

    def _restore(self, code: int, data: bytes) -> Any:
        if code != EXT_PYDANTIC_V2:
            return self._hook(code, data)
        value = self._messages.get(data)
        if value is None:
            value = self._messages[data] = self._hook(code, data)
        return value

    def _normal(self, value: Any) -> Any:
        """An object as rows give it, without its class."""
        kind, blob = _plain.dumps_typed(value)
        return unpack(blob, self._hook) if kind == "msgpack" else value

    # -- comparing ---------------------------------------------------------------------------------

    def _equal(self, value: Any, other: Any) -> bool:
        """Whether two values are the same, to the type and to the order of keys."""
        if type(value) is not type(other):
            return False
        if type(value) is list or type(value) is tuple:
            return len(value) == len(other) and all(map(self._equal, value, other))
        if type(value) is dict:
            return self._equal(list(value), list(other)) and all(
                map(self._equal, value.values(), other.values())
            )
        if not isinstance(value, BaseMessage):
            return _plain.dumps_typed(value) == _plain.dumps_typed(other)
        pair = id(value), id(other)
        if pair not in self._compared:
            # Kept with the answer: the id of an object that is gone is given again.
            self._compared[pair] = (
                _plain.dumps_typed(value) == _plain.dumps_typed(other),
                value,
                other,
            )
        return self._compared[pair][0]


class _SharingCodec(MessageCodec):
    """Loads the same message as the same object, so that two of them need to be compared once."""

    def __init__(self) -> None:
        super().__init__(NamingPolicy())
        self._loaded: dict[Snapshot, Any] = {}

    def load_value(self, packed: PackedValue) -> Any:
        if packed.body is not None:
            return super().load_value(packed)
        for message in packed.messages:
            if message not in self._loaded:
                self._loaded[message] = self.load_message(message)
        return [self._loaded[message] for message in packed.messages]


def _sorted(mapping: Any) -> dict[str, Any]:
    return {name: mapping[name] for name in sorted(mapping)}


_PARTS: Final[dict[str, Callable[[CheckpointTuple], Any]]] = {
    "parent": lambda checkpoint: checkpoint.parent_config,
    "metadata": lambda checkpoint: _sorted(checkpoint.metadata),
    "checkpoint": lambda checkpoint: _sorted(checkpoint.checkpoint),
    "list of pending writes": lambda checkpoint: checkpoint.pending_writes,
}
"""What is compared; of a checkpoint's and of metadata's own keys the order means nothing."""
