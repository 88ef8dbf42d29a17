"""What the rest of the package needs of a database connection: run an operation as one transaction, sync or async."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Protocol, TypeAlias, TypeVar

from langmem_ext.storage.effects import Operation, Rows, Statement
from langmem_ext.storage.index import Indexes

T = TypeVar("T")

Sizing: TypeAlias = Generator[tuple[Operation[Any], bool], Any, int]
"""Work in steps: yields each operation, and whether it writes; is sent its result."""


class Driver(Protocol):
    """Runs operations. One operation is one transaction: all of it happens, or nothing.

    Attributes:
        remote: Whether asking costs a trip; a thread's number follows from its id then.
        compresses: Whether the database compresses long texts itself; its columns for texts take nothing else then.
    """

    remote: bool
    compresses: bool

    @property
    def place(self) -> str:
        """The database, for people: without what is secret."""

    @property
    def closed(self) -> bool:
        """Whether it was closed."""

    def glance(self, statement: Statement) -> Rows | None:
        """What a statement reads, if that disturbs nobody and needs no waiting; else None."""

    def run(self, op: Operation[T], *, write: bool) -> T:
        """Run `op` in the calling thread; where it comes to nothing for another's sake, perhaps several times.

        Args:
            op: The operation.
            write: Whether it changes anything; a read sees one consistent state.

        Raises:
            StorageError: The database refused; it is as it was before.
        """

    async def arun(self, op: Operation[T], *, write: bool) -> T:
        """Async twin of `run`. Cancelling the caller cannot split the transaction."""

    async def acall(self, function: Callable[[], T]) -> T:
        """Run `function` off the event loop, where `arun` runs operations: an operation and its decoding in one hop."""

    def share(self, indexes: Indexes) -> None:
        """Have what is known here forgotten, before anything else runs, whenever an operation has failed that worked with it."""

    def used_bytes(self, limit: int, now: int, *, wholly: bool) -> Sizing:
        """The steps that tell how many bytes of the database hold something: free space inside it does not count.

        Args:
            limit: Below it nobody needs to know exactly.
            now: The moment that it is, in Unix milliseconds.
            wholly: As exactly as can be, however long it takes; else in a few short steps, and it may be less than there is.
        """

    def compaction(self, *, full: bool) -> Generator[None, None, int]:
        """Give free space back to the file system, a step at a time, each a transaction of its own; returns the bytes given back.

        Args:
            full: Write the whole database anew, in one step that writers wait for.
        """

    def lease(self, thread_id: str, *, wait: float) -> AbstractContextManager[None]:
        """Hold the right to drive a thread, against every other caller and process, while the context lasts.

        Args:
            thread_id: The thread.
            wait: Seconds to wait for another holder.

        Raises:
            ThreadBusy: Another caller still holds it.
        """

    def alease(self, thread_id: str, *, wait: float) -> AbstractAsyncContextManager[None]:
        """Async twin of `lease`."""

    def close(self) -> None:
        """Release everything; idempotent."""

    async def aclose(self) -> None:
        """Async twin of `close`."""
