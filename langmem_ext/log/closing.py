"""Who closes a database: whoever has opened it, by `close` or at the end of a `with`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from langmem_ext.log.shown import Showing

if TYPE_CHECKING:
    from langmem_ext.log.message_log import MessageLog


class Closing(Showing):
    """A view of a database, which closes it where that is the view's to do.

    Attributes:
        log: The database.
    """

    log: MessageLog
    _opened: bool
    """Whether it was opened here: one that was passed in stays open."""

    def close(self) -> None:
        """Close the database, unless it was passed in; idempotent."""
        if self._opened:
            self.log.close()

    async def aclose(self) -> None:
        """Async twin of `close`."""
        if self._opened:
            await self.log.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
