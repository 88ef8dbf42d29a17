"""The open database, on which every view is made; each thread is one message log, stored once."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import time
from collections.abc import Generator
from contextlib import suppress
from typing import Any, Protocol, TypeAlias, TypeVar
from urllib.parse import quote, urlencode
from uuid import UUID

from typing_extensions import TypeIs

from langmem_ext._internal.forking import renew_in_child
from langmem_ext._internal.secret_names import masked_parameters
from langmem_ext._internal.url import Address, parts_of, require_path, text_of
from langmem_ext.errors import InvalidInput, InvalidThreadId, MissingExtra, StorageUnavailable
from langmem_ext.log.shown import ReprFacts, Showing
from langmem_ext.storage.cache import ThreadCaches
from langmem_ext.storage.checkpoints.late_writes import PATIENCE, Buried, certain
from langmem_ext.storage.driver import Driver
from langmem_ext.storage.operation import Operation
from langmem_ext.storage.rows import compression
from langmem_ext.storage.sqlite.driver import SqliteDriver, Synchronous

T = TypeVar("T")


class HasLog(Protocol):
    """A view of an open database, as `DeltaSaver` is."""

    log: MessageLog


Database: TypeAlias = "MessageLog | HasLog | Address"
"""How a caller may name a database: an open one, or its path or URL."""

_THREAD_IDS = (str, int, UUID)

CACHE_BYTES = 256 * 1024 * 1024
"""About how many bytes of its threads' messages one log remembers at most."""


class MessageLog(Showing):
    """A database of conversations, for sync and async callers in any thread and event loop.

    Args:
        driver: Runs its operations.
        cache_bytes: The size of the cache of recently used threads.
        compress: Whether new rows are compressed, where that saves at least a tenth.

    Raises:
        MissingExtra: Compression needs zstd, which is not installed.
    """

    def __init__(
        self, driver: Driver, *, cache_bytes: int = CACHE_BYTES, compress: bool = False
    ) -> None:
        if compress:
            compression.require()
        self.driver = driver
        texts = compress and not driver.compresses
        self.caches = ThreadCaches(
            cache_bytes, compress=compress, compress_texts=texts, remote=driver.remote
        )
        renew_in_child(self.caches)
        driver.on_rollback(self.caches.forget_thread)

    @classmethod
    def open(
        cls,
        url: Address | sqlite3.Connection,
        *,
        synchronous: Synchronous = "full",
        cache_bytes: int = CACHE_BYTES,
        compress: bool = False,
        own: bool = False,
    ) -> MessageLog:
        """Open a database, and create it if it does not exist.

        Args:
            url: A path (a `str` or a `pathlib.Path`), `:memory:`, `sqlite:///path` (four slashes
                for an absolute path; with `?mode=ro` behind it, the database must be there and is
                only read), `postgresql://user@host/name` (extra `postgres`), or an open `sqlite3`
                connection.
            synchronous: `full`: what was acknowledged survives power loss. `normal`: it survives a
                killed process, and commits cost less. PostgreSQL always does the first.
            cache_bytes: The size of the cache of recently used threads.
            compress: Compress new rows, where that saves at least a tenth. Each row states whether
                it is compressed, so the option may change at any time; compressed rows are not
                readable in the `sqlite3` shell.
            own: The file is for this package alone: a file with only another program's tables is
                refused, and a new file is readable by its user only. Without it, programs may share
                a file, and the umask applies. Ignored for a passed connection.

        Raises:
            InvalidInput: The URL is not of a supported database.
            MissingExtra: Compression needs zstd, which is not installed.
            StorageError: The database cannot be opened (its subclasses say why).
        """
        if compress:
            compression.require()  # before there is a file
        if isinstance(url, sqlite3.Connection):
            return cls(
                SqliteDriver(connection=url, synchronous=synchronous),
                cache_bytes=cache_bytes,
                compress=compress,
            )
        url = text_of(url)
        if is_server(url):
            return cls(_server_driver(url), cache_bytes=cache_bytes, compress=compress)
        path, read_only = sqlite_path(url)
        driver = SqliteDriver(path, synchronous=synchronous, read_only=read_only, own=own)
        return cls(driver, cache_bytes=cache_bytes, compress=compress)

    @classmethod
    async def aopen(
        cls,
        url: Address | sqlite3.Connection,
        *,
        synchronous: Synchronous = "full",
        cache_bytes: int = CACHE_BYTES,
        compress: bool = False,
        own: bool = False,
    ) -> MessageLog:
        """Async twin of `open`, which does not block the event loop."""
        options: dict[str, Any] = {
            "synchronous": synchronous,
            "cache_bytes": cache_bytes,
            "compress": compress,
            "own": own,
        }
        return await asyncio.to_thread(cls.open, url, **options)

    @classmethod
    def of(cls, source: Database) -> MessageLog:
        """The log for an argument: a log itself, a saver's, or a newly opened one."""
        if isinstance(source, MessageLog):
            return source
        log = getattr(source, "log", None)
        if isinstance(log, MessageLog):
            return log
        if is_address(source):
            return cls.open(source)
        raise InvalidInput(
            f"{type(source).__name__} is not a database: pass a MessageLog, a DeltaSaver, a path or"
            " a URL"
        )

    def _repr_facts(self) -> ReprFacts:
        return ReprFacts(self.driver)

    def has_database_of(self, other: MessageLog) -> bool:
        """Whether another log has open the same file, or the same tables on a server."""
        address = self.driver.address
        return other is self or (address is not None and address == other.driver.address)

    def run(self, op: Operation[T], *, write: bool) -> T:
        """Run an operation in the calling thread, as one transaction."""
        return self.driver.run(op, write=write)

    async def arun(self, op: Operation[T], *, write: bool) -> T:
        """Async twin of `run`."""
        return await self.driver.arun(op, write=write)

    def write_of_run(self, op: Operation[T]) -> T:
        """Run an operation of a graph's run that writes; one that may be late is tried again.

        Otherwise the same as `run`. Late writes: `storage.checkpoints.late_writes`.
        """
        try:
            result = self.driver.run(op, write=True)
        except Buried:
            result = self._write_late(op)
        late_writes = self.caches.late_writes
        if late_writes.begun:
            late_writes.note_found(op.thread)
        return result

    def _write_late(self, op: Operation[T]) -> T:
        for pause in PATIENCE:
            time.sleep(pause)
            with suppress(Buried):
                return self.run(op, write=True)
        with certain():
            return self.run(op, write=True)

    async def awrite_of_run(self, op: Operation[T]) -> T:
        """Async twin of `write_of_run`."""
        try:
            result = await self.driver.arun(op, write=True)
        except Buried:
            result = await self._awrite_late(op)
        late_writes = self.caches.late_writes
        if late_writes.begun:
            late_writes.note_found(op.thread)
        return result

    async def _awrite_late(self, op: Operation[T]) -> T:
        for pause in PATIENCE:
            await asyncio.sleep(pause)
            with suppress(Buried):
                return await self.arun(op, write=True)
        with certain():
            return await self.arun(op, write=True)

    def compact(self, *, full: bool = False) -> int:
        """Return deleted data's space to the file system; returns by how many bytes it shrank.

        It works in short steps, and writers continue in between. Afterwards, deleted data is
        neither in the file nor in its write-ahead log, unless another process was still reading:
        the log keeps what that reader may need, until it is overwritten.

        A file that this package did not make has no list of its free pages, and neither has the
        database of a passed connection that had tables before: nothing is given back then (the
        answer is 0), unless it is written anew. A passed connection leaves deleted text in the file
        where its program has not set `PRAGMA secure_delete`.

        Args:
            full: Rewrite the whole database (`VACUUM`): the smallest file, and free pages can be
                returned step by step from then on. Needs as much free space again, and writers
                wait.

        Raises:
            StorageError: The database cannot be written.
        """
        steps = self.driver.compaction(full=full)
        while (given_back := _advance(steps)) is None:
            pass
        return given_back

    async def acompact(self, *, full: bool = False) -> int:
        """Async twin of `compact`; other callers of this log get on between two steps, too."""
        steps = self.driver.compaction(full=full)
        while (given_back := await self.driver.acall(lambda: _advance(steps))) is None:
            pass
        return given_back

    def close(self) -> None:
        """Close the database; idempotent."""
        self.driver.close()
        self.caches.forget()

    async def aclose(self) -> None:
        """Async twin of `close`."""
        await self.driver.aclose()
        self.caches.forget()


def _advance(steps: Generator[None, None, T]) -> T | None:
    """Take one step; returns what the last one returned, or None."""
    try:
        next(steps)
    except StopIteration as done:
        result: T = done.value
        return result
    return None


def is_address(source: object) -> TypeIs[Address]:
    """Whether this names a database that is not open."""
    return isinstance(source, str | os.PathLike)


_READ_ONLY = "?mode=ro"
_OPTION = re.compile(r"\?\w+=")


def is_server(url: object) -> bool:
    """Whether a URL names a PostgreSQL database."""
    return isinstance(url, str) and url.startswith(("postgresql://", "postgres://"))


def _server_driver(url: str) -> Driver:
    try:
        from langmem_ext.storage.postgres.driver import PostgresDriver  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise MissingExtra("a PostgreSQL database", "postgres") from error
    return PostgresDriver(url)


def existing(address: Address, *, read_only: bool) -> str:
    """The URL of an existing database.

    Raises:
        InvalidInput: The URL is not of a supported database.
        StorageUnavailable: There is no such file.
    """
    url = text_of(address)
    if is_server(url):
        place, options = parts_of(url)
        mode = "ro" if read_only or options.get("mode") == "ro" else "rw"
        return f"postgresql://{place}?{urlencode(options | {'mode': mode}, quote_via=quote)}"
    path, asked = sqlite_path(url)
    if path == ":memory:" or not os.path.exists(path):
        raise StorageUnavailable(f"database {path} not found: pass the path of an existing one")
    return f"sqlite:///{path}{_READ_ONLY if read_only or asked else ''}"


def sqlite_path(url: str) -> tuple[str, bool]:
    """The path that a URL names, and whether the database is opened read-only.

    Raises:
        InvalidInput: It names none.
        StorageUnavailable: It names a kind of database that this release does not have.
    """
    if not isinstance(url, str) or not url or "\0" in url:
        got = "nothing usable" if isinstance(url, str) else f"a {type(url).__name__}"
        raise InvalidInput(
            "pass a database as a path, ':memory:' or a URL, as a str or a Path: 'memory.db',"
            f" 'sqlite:///memory.db', 'postgresql://user@host/name'; got {got}"
        )
    if url == ":memory:" or "://" not in url:
        require_path(url)
        return url, False
    scheme, _, rest = url.partition("://")
    if scheme != "sqlite":
        raise InvalidInput(
            f"unknown kind of database {scheme!r}: use a path, ':memory:', 'sqlite:///memory.db' or"
            " a postgresql:// URL"
        )
    path = rest.removeprefix("/").removesuffix(_READ_ONLY)
    if _OPTION.search(path) and not os.path.exists(path):
        raise InvalidInput(
            "a sqlite:/// URL has one option, ?mode=ro:"
            f" {masked_parameters(path[path.index('?') :])!r} cannot be used"
        )
    return path or ":memory:", rest.endswith(_READ_ONLY)


def thread_key(thread_id: object) -> str:
    """A thread id as text.

    Raises:
        InvalidThreadId: It is empty, or neither a string, an int nor a UUID.
    """
    if isinstance(thread_id, bool) or not isinstance(thread_id, _THREAD_IDS):
        raise InvalidThreadId(
            f"a thread id must be a string, an int or a UUID, not {type(thread_id).__name__}: pass"
            " configurable['thread_id']"
        )
    # A member of a `StrEnum` is its text, whatever str() makes of it.
    text = str.__str__(thread_id) if isinstance(thread_id, str) else str(thread_id)
    if not _is_name(text):
        raise InvalidThreadId(
            "a thread id is empty or has a character that cannot be stored: pass a name like"
            " 'order-17'"
        )
    return text


def owner_key(owner: object) -> str | None:
    """An owner as text; None for a caller that may see every thread.

    Raises:
        InvalidInput: It is empty, or no name.
    """
    if owner is None:
        return None
    text = str.__str__(owner) if isinstance(owner, str) else str(owner)
    if isinstance(owner, bool) or not isinstance(owner, _THREAD_IDS) or not _is_name(text):
        raise InvalidInput(
            "an owner must be a name like 'u1'; omit it for a caller that may see every thread"
        )
    return text


def require_storable(text: object, what: str) -> None:
    """Require that a text can be searched for and stored in any database.

    An empty text, or a value that is no text, is not checked here.

    Raises:
        InvalidInput: It holds a character that no text column takes.
    """
    if text and isinstance(text, str) and not _is_name(text):
        raise InvalidInput(
            f"{what} has a NUL character or a lone surrogate, which cannot be stored: use printable"
            " characters"
        )


def bound_owner(source: object, owner: object) -> str | None:
    """The owner that a view of a log is bound to: its saver's, which it cannot change, or its own.

    Raises:
        InvalidInput: The two differ, or the owner is no name.
    """
    # Not that of a path: a `Path` has a method `owner`.
    bound, asked = None if is_address(source) else getattr(source, "owner", None), owner_key(owner)
    if bound is not None and asked is not None and bound != asked:
        raise InvalidInput(
            "the saver is bound to another owner: pass the log, or a saver bound to this owner"
        )
    return bound or asked


def _is_name(text: str) -> bool:
    """Whether a text is not empty and can be stored in a text column.

    That excludes NUL characters and lone surrogates.
    """
    return (
        bool(text)
        and "\0" not in text
        and (text.isascii() or text.encode("utf-8", "replace").decode() == text)
    )
