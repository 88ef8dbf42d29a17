"""Checkpoints read page by page as their caller takes them: a list, or named ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from langchain_core.runnables import RunnableConfig

from langmem_ext.checkpointer.values import ListedCheckpoint, matches
from langmem_ext.errors import DamagedRow
from langmem_ext.log.codec import MessageCodec
from langmem_ext.storage.cache import ThreadCaches
from langmem_ext.storage.checkpoints import get as read_ops
from langmem_ext.storage.checkpoints import many as many_ops
from langmem_ext.storage.operation import Operation
from langmem_ext.types import StoredCheckpoint

PAGE: Final = 32
"""Checkpoints of the first page. Each further page has twice as many: a caller who reads on mostly
wants all."""

LAST_PAGE: Final = 128
"""The maximum number of checkpoints of a page."""


class CheckpointPages:
    """The pages of a list, one after the other.

    Args:
        query: Which checkpoints to list; None if nothing can be found.
        filter: Values that the metadata must equal, by plain name.
        limit: The maximum number of checkpoints; None for all.
        caches, codec: The log's and the saver's.
    """

    def __init__(
        self,
        query: read_ops.Query | None,
        filter: Mapping[str, Any] | None,
        limit: int | None,
        *,
        caches: ThreadCaches,
        codec: MessageCodec,
    ) -> None:
        self._query = query
        self._filter = filter
        self._left = math.inf if limit is None else limit
        self._caches = caches
        self._codec = codec
        self._cursor: read_ops.Cursor | None = None
        self._size = PAGE

    def following(self) -> Operation[read_ops.Page] | None:
        """The operation that reads the next page; None after the last, or at the limit."""
        if self._query is None or self._left <= 0:
            return None
        size = int(min(self._size, self._left)) if not self._filter else self._size
        self._size = min(2 * self._size, LAST_PAGE)
        return read_ops.list_page(
            self._query, self._cursor, size, caches=self._caches, codec=self._codec
        )

    def wanted(self, page: read_ops.Page) -> Iterator[ListedCheckpoint]:
        """The checkpoints of a page that match the filter, up to the limit."""
        stored, self._cursor = page
        if self._cursor is None:
            self._query = None
        for row in stored:
            checkpoint = ListedCheckpoint(self._codec, row, row.thread)
            if self._left > 0 and matches(checkpoint.metadata, self._filter):
                self._left -= 1
                yield checkpoint


class NamedCheckpoints:
    """The pages of checkpoints that the caller names, in the caller's order.

    Args:
        configs: The configs that name them.
        wanted: The checkpoint of each config; None if the caller must not see it.
        caches, codec: The log's and the saver's.
    """

    def __init__(
        self,
        configs: Sequence[RunnableConfig],
        wanted: Sequence[many_ops.Wanted | None],
        *,
        caches: ThreadCaches,
        codec: MessageCodec,
    ) -> None:
        self._configs = configs
        self._wanted = wanted
        self._caches = caches
        self._codec = codec
        self._at = 0
        self._size = LAST_PAGE

    def following(self) -> Operation[many_ops.Page] | None:
        """The operation that reads the next page; None after the last."""
        wanted = self._wanted[self._at : self._at + self._size]
        return (
            many_ops.get_checkpoints(wanted, caches=self._caches, codec=self._codec)
            if wanted
            else None
        )

    def with_configs(
        self, page: many_ops.Page
    ) -> Iterator[tuple[RunnableConfig, StoredCheckpoint | None]]:
        """The checkpoints of a page with their configs; each is released with the next one."""
        page.reverse()
        while page:
            config = self._configs[self._at]
            self._at += 1
            yield config, page.pop()

    def failed(self, error: DamagedRow) -> None:
        """Note that a row of a page is damaged: its checkpoints are then read one by one.

        Raises:
            DamagedRow: The page had one checkpoint.
        """
        if self._size == 1:
            raise error
        self._size = 1
