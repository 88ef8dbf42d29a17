"""What a thread's view is made on: a database, an owner, and how messages are read and written."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import LATEST_VERSION
from langgraph.checkpoint.base.id import uuid6

from langmem_ext._internal.interruption import pass_on
from langmem_ext.errors import DamagedRow, cause, safe_text
from langmem_ext.log.codec import MessageCodec
from langmem_ext.log.message_log import Database, MessageLog, bound_owner, thread_key
from langmem_ext.log.restore import RestorePolicy
from langmem_ext.messages.written import as_message
from langmem_ext.storage.rows.checkpoint import MINOR_DIGITS
from langmem_ext.storage.rows.clock import now_ms
from langmem_ext.storage.threads.edit import Edit
from langmem_ext.types import PackedValue, ThreadKey

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol


@dataclass(frozen=True, slots=True)
class DatabaseView:
    """A database as a view uses it.

    Attributes:
        log: The open database.
        owner: Whom the view speaks for; None for one that sees every thread.
        codec: Reads and writes messages and values: a saver's own, or the default.
        serde: The serializer of a saver; None: the default.
    """

    log: MessageLog
    owner: str | None
    codec: MessageCodec
    serde: SerializerProtocol | None = None

    @classmethod
    def of(cls, log: Database, owner: object) -> DatabaseView:
        """What a caller means: a log, a saver with its serializer and owner, or a path or URL.

        Raises:
            InvalidInput: It is no database, or the saver is bound to another owner, which a view of
                it cannot change.
        """
        bound = bound_owner(log, owner)
        opened = MessageLog.of(log)
        codec: Any = getattr(log, "codec", None)
        codec = codec or MessageCodec(RestorePolicy())
        return cls(opened, bound, codec, getattr(log, "serde", None))

    def key(self, thread_id: object) -> ThreadKey:
        """A thread as storage is asked for it.

        Raises:
            InvalidThreadId: The thread id is empty, or neither a string, an int nor a UUID.
        """
        return ThreadKey(thread_key(thread_id), self.owner)

    def new_edit(self) -> Edit:
        """A checkpoint that no graph makes: its id and times as LangGraph gives them."""
        return Edit(
            checkpoint_id=str(uuid6(clock_seq=-1)),
            ts=datetime.now(UTC).isoformat(),
            now=now_ms(),
            random=random.randrange(MINOR_DIGITS),
            v=LATEST_VERSION,
            details=self.codec.pack_plain({"parents": {}}),
        )

    def load(self, value: PackedValue, thread_id: object) -> Any:
        """A value of a thread, as an object of the caller's own.

        Raises:
            DamagedRow: It does not decode.
        """
        try:
            if value.body is None:  # what is read without its graph
                value = PackedValue(messages=list(map(as_message, value.messages)))
            return self.codec.load_value(value)
        except Exception as error:
            pass_on(error)
            raise DamagedRow(
                f"thread {str(thread_id)!r} holds a value that does not decode"
                f" ({safe_text(error)}): other threads stay readable; open it with the serializer"
                " that wrote it, or delete it"
            ) from cause(error)

    @property
    def tools(self) -> dict[str, Any]:
        """What every operation takes besides its own arguments."""
        return {"caches": self.log.caches, "codec": self.codec}
