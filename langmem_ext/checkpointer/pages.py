"""Checkpoints read page by page, while their caller takes them: a list, or named ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from langchain_core.runnables import RunnableConfig

from langmem_ext.checkpointer.values import ListedCheckpoint, matches
from langmem_ext.errors import DamagedRow
from langmem_ext.log.codec import MessageCodec
from langmem_ext.storage.cache import Indexes
from langmem_ext.storage.checkpoints import get as read_ops
from langmem_ext.storage.checkpoints import many as many_ops
from langmem_ext.storage.operation import Operation
from langmem_ext.types import StoredCheckpoint

PAGE: Final = 32
"""Checkpoints of the first page; each that follows has twice as many, since whoever reads on mostly
wants all."""

LAST_PAGE: Final = 128
"""Checkpoints of a page, at most."""


class CheckpointPages:
    """The pages of a list, one after the other.

    Args:
        query: What is asked for; None: nothing can be found.
        filter: Values that the metadata must equal, by plain name.
        limit: At most so many checkpoints; None: all.
        indexes, codec: The log's and the saver's.
    """

    def __init__(
        self,
        query: read_ops.Query | None,
        filter: Mapping[str, Any] | None,
        limit: int | None,
        *,
        indexes: Indexes,
        codec: MessageCodec,
    ) -> None:
        self._query = query
        self._filter = filter
        self._left = math.inf if limit is None else limit
        self._indexes = indexes
        self._codec = codec
        self._cursor: read_ops.Cursor | None = None
        self._size = PAGE

    def following(self) -> Operation[read_ops.Page] | None:
        """What reads the next page; None where there is none, or no more are wanted."""
        if self._query is None or self._left <= 0:
            return None
        size = int(min(self._size, self._left)) if not self._filter else self._size
        self._size = min(2 * self._size, LAST_PAGE)
        return read_ops.list_page(
            self._query, self._cursor, size, indexes=self._indexes, codec=self._codec
        )

    def wanted(self, page: read_ops.Page) -> Iterator[ListedCheckpoint]:
        """The checkpoints of a page that are asked for."""
        stored, self._cursor = page
        if self._cursor is None:
            self._query = None
        for one in stored:
            found = ListedCheckpoint(self._codec, one, one.thread)
            if self._left > 0 and matches(found.metadata, self._filter):
                self._left -= 1
                yield found


class NamedCheckpoints:
    """The pages of checkpoints that the caller names, in the caller's order.

    Args:
        configs: What names them.
        wanted: What each config asks for; None: what nobody may see.
        indexes, codec: The log's and the saver's.
    """

    def __init__(
        self,
        configs: Sequence[RunnableConfig],
        wanted: Sequence[many_ops.Wanted | None],
        *,
        indexes: Indexes,
        codec: MessageCodec,
    ) -> None:
        self._configs = configs
        self._wanted = wanted
        self._indexes = indexes
        self._codec = codec
        self._at = 0
        self._size = LAST_PAGE

    def following(self) -> Operation[many_ops.Page] | None:
        """What reads the next page; None where there is none."""
        wanted = self._wanted[self._at : self._at + self._size]
        return (
            many_ops.get_checkpoints(wanted, indexes=self._indexes, codec=self._codec)
            if wanted
            else None
        )

    def found(
        self, page: many_ops.Page
    ) -> Iterator[tuple[RunnableConfig, StoredCheckpoint | None]]:
        """The checkpoints of a page with their configs; each is let go of with the next one."""
        page.reverse()
        while page:
            config = self._configs[self._at]
            self._at += 1
            yield config, page.pop()

    def failed(self, error: DamagedRow) -> None:
        """Something of a page is damaged: what comes before it is read one by one.

        Raises:
            DamagedRow: It was read alone.
        """
        if self._size == 1:
            raise error
        self._size = 1
